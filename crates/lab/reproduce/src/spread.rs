//! Experiments of all papers, spread over threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::{Experiment, Paper, Ran, Result, Scale, experiments};

/// An experiment of a paper, which has not run.
pub struct Task {
    /// Its paper.
    pub paper: Paper,
    /// The experiment.
    pub experiment: Box<dyn Experiment>,
}

/// The state of a task, given by its place in the list.
#[derive(Debug)]
pub enum Event {
    /// A thread runs it now.
    Began(usize),
    /// It ended.
    Ended(usize, Result<Ran>),
}

/// Returns the experiments of all papers. Neighbours are of different papers, since those of one wait for
/// tables that they share.
#[must_use]
pub fn tasks() -> Vec<Task> {
    let mut papers: Vec<_> =
        Paper::ALL.map(|paper| (paper, experiments(paper).into_iter())).into_iter().collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        for (paper, rest) in &mut papers {
            all.extend(rest.next().map(|experiment| Task { paper: *paper, experiment }));
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Runs the tasks, at most `threads` at once, and reports on this thread what happens. The order in which
/// tasks end depends on the machine; outcomes do not. After a report that fails no task begins.
///
/// # Errors
/// Returns the error of `report`.
pub fn spread<E>(
    tasks: &[Task],
    scale: Scale,
    threads: NonZero<usize>,
    mut report: impl FnMut(Event) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (sender, events) = channel();
        for _ in 0..threads.get().min(tasks.len()) {
            let sender = sender.clone();
            let (next, is_over) = (&next, &is_over);
            scope.spawn(move || work(tasks, scale, next, is_over, &sender));
        }
        drop(sender);
        let outcome = events.into_iter().try_for_each(&mut report);
        is_over.store(true, Relaxed);
        outcome
    })
}

/// Runs one thread: a task after another.
fn work(
    tasks: &[Task],
    scale: Scale,
    next: &AtomicUsize,
    is_over: &AtomicBool,
    events: &Sender<Event>,
) {
    while !is_over.load(Relaxed) {
        let index = next.fetch_add(1, Relaxed);
        let Some(task) = tasks.get(index) else { return };
        // After a report that failed the receiver is gone.
        if events.send(Event::Began(index)).is_err() {
            return;
        }
        let _ = events.send(Event::Ended(index, Ran::run(task.paper, &*task.experiment, scale)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Row, Table};

    /// An experiment that ends at once.
    struct Quick(f64);

    impl Experiment for Quick {
        fn name(&self) -> &'static str {
            "quick"
        }

        fn title(&self) -> &'static str {
            "Quick"
        }

        fn reference(&self) -> &'static str {
            "section 1"
        }

        fn run(&self, _: Scale) -> Result<Outcome> {
            let rows = vec![Row::predicted("a", "", self.0)];
            Ok(Outcome { tables: vec![Table { title: "t".into(), rows }], ..Outcome::default() })
        }
    }

    fn quick(count: usize) -> Vec<Task> {
        let task =
            |number| Task { paper: Paper::BufferHash, experiment: Box::new(Quick(number as f64)) };
        (0..count).map(task).collect()
    }

    #[test]
    fn each_task_begins_and_ends_once_with_its_own_outcome() {
        let mut begun = vec![0; 20];
        let mut ended = vec![None; 20];
        let two = NonZero::new(2).unwrap();
        let done: std::result::Result<(), ()> =
            spread(&quick(20), Scale::default(), two, |event| {
                match event {
                    Event::Began(index) => begun[index] += 1,
                    Event::Ended(index, ran) => {
                        ended[index] = ran.unwrap().outcome.tables[0].rows[0].ours;
                    }
                }
                Ok(())
            });
        assert_eq!(done, Ok(()));
        assert_eq!(begun, [1; 20]);
        assert!(ended.iter().enumerate().all(|(index, ours)| *ours == Some(index as f64)));
    }

    #[test]
    fn a_report_that_fails_ends_the_run() {
        let mut reports = 0;
        let one = NonZero::new(1).unwrap();
        let done = spread(&quick(20), Scale::default(), one, |_| {
            reports += 1;
            if reports == 3 { Err("full") } else { Ok(()) }
        });
        assert_eq!((done, reports), (Err("full"), 3));
    }

    #[test]
    fn all_experiments_are_tasks_and_neighbours_are_of_different_papers() {
        let all = tasks();
        let count: usize = Paper::ALL.iter().map(|paper| experiments(*paper).len()).sum();
        assert_eq!(all.len(), count);
        assert!(all[..10].windows(2).all(|pair| pair[0].paper != pair[1].paper));
    }
}
