//! Independent work on all cores.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread::{Builder, available_parallelism, current, scope};

/// Works on each of these, several at a time, and returns the results in their order.
///
/// # Panics
/// Panics as `work` does, once the other threads have ended.
pub fn each<T: Send, R: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let waiting = Mutex::new(items.collect::<Vec<_>>().into_iter().enumerate());
    let next = || waiting.lock().expect("no holder of this lock panics").next();
    let work = || -> Vec<(usize, R)> {
        std::iter::from_fn(next).map(|(number, item)| (number, work(item))).collect()
    };
    let threads = available_parallelism().map_or(1, usize::from);
    // A test's thread has the test's name, and so do the threads that work for it.
    let name = current().name().unwrap_or("parallel").to_owned();
    let mut results: Vec<_> = scope(|scope| {
        let start = |_| {
            let builder = Builder::new().name(name.clone());
            builder.spawn_scoped(scope, work).expect("a thread can be started")
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results.flat_map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items() {
        assert_eq!(
            each(0..100, |number| 3 * number),
            (0..100).map(|it| 3 * it).collect::<Vec<_>>()
        );
    }
}
