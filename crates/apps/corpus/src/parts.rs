//! Work on many items by several threads.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

/// The number of threads, and the number of items that are worth one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// The most threads, including the caller's; 1 or more.
    pub most: usize,
    /// The least number of items for a thread; 1 or more.
    pub items_min: usize,
}

impl Threads {
    /// Returns as many threads as the system has processors for this process, but at most 8.
    #[must_use]
    pub fn of_system(items_min: usize) -> Self {
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        Self { most, items_min }
    }
}

/// Calls `work` with parts of the items, each on a thread; returns the results, in the order of the parts.
///
/// # Panics
/// If `work` does.
pub fn in_parts<T: Send, R: Send>(
    items: &mut [T],
    threads: Threads,
    work: impl Fn(&mut [T]) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    let part = items.len().div_ceil(threads.most.max(1)).max(threads.items_min.max(1));
    std::thread::scope(|scope| {
        let mut parts = items.chunks_mut(part);
        let own = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let own = own.map(work);
        own.into_iter().chain(others.into_iter().map(joined)).collect()
    })
}

/// Calls `own` on this thread, while others call `work` with parts of the items, each with the fewest items that are
/// worth a thread. When `own` is done, this thread works on the remaining parts too. Returns the result of `own`, and
/// those of `work` in the order of the parts.
///
/// # Panics
/// If `work` or `own` do.
pub fn in_parts_meanwhile<T: Sync, R: Send, O>(
    items: &[T],
    threads: Threads,
    work: impl Fn(&[T]) -> R + Sync,
    own: impl FnOnce() -> O,
) -> (O, Vec<R>) {
    let parts: Vec<&[T]> = items.chunks(threads.items_min.max(1)).collect();
    let next = AtomicUsize::new(0);
    let take = || {
        let claimed = || {
            let place = next.fetch_add(1, Relaxed);
            Some((place, work(parts.get(place)?)))
        };
        std::iter::from_fn(claimed).collect::<Vec<_>>()
    };
    let (own, mut made) = std::thread::scope(|scope| {
        let others = threads.most.saturating_sub(1).min(parts.len());
        let others: Vec<_> = (0..others).map(|_| scope.spawn(take)).collect();
        let own = own();
        let mut made = take();
        made.extend(others.into_iter().flat_map(joined));
        (own, made)
    });
    made.sort_unstable_by_key(|(place, _)| *place);
    (own, made.into_iter().map(|(_, made)| made).collect())
}

/// Returns the result of a thread. Propagates a panic, as one on this thread would be.
fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_worked_on_once_while_something_else_is_done() {
        for (most, items_min, parts) in [(1, 30, 4), (3, 1, 100), (3, 40, 3), (7, 200, 1)] {
            let items: Vec<u32> = (0..100).collect();
            let double = |part: &[u32]| part.iter().map(|item| 2 * item).collect::<Vec<_>>();
            let threads = Threads { most, items_min };
            let (own, made) = in_parts_meanwhile(&items, threads, double, || "own");
            assert_eq!((own, made.len()), ("own", parts));
            assert_eq!(made.concat(), (0..200).step_by(2).collect::<Vec<u32>>());
        }
        let none = in_parts_meanwhile(&[0_u8; 0], Threads::of_system(1), <[u8]>::len, || 7);
        assert_eq!(none, (7, Vec::new()));
    }

    #[test]
    fn all_items_are_worked_on_once_and_results_are_in_their_order() {
        for (most, items_min, parts) in [(1, 1, 1), (3, 1, 3), (3, 40, 3), (7, 60, 2), (9, 500, 1)]
        {
            let mut items: Vec<u32> = (0..100).collect();
            let sums = in_parts(&mut items, Threads { most, items_min }, |part| {
                part.iter_mut().for_each(|item| *item += 1);
                part.to_vec()
            });
            assert_eq!(sums.len(), parts);
            assert_eq!(sums.concat(), (1..=100).collect::<Vec<u32>>());
        }
        assert!(in_parts(&mut [0_u8; 0], Threads::of_system(1), |part| part.len()).is_empty());
    }
}
