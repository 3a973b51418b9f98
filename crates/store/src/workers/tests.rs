//! The background threads of a volume, with structures that report when they work.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const LONGEST: Duration = Duration::from_secs(60);

/// Reports each job, which then waits until it may end.
struct Told {
    began: Sender<()>,
    may_end: Mutex<Receiver<()>>,
    rested: AtomicUsize,
}

impl BackgroundWork for Told {
    fn work(&self) -> bool {
        self.began.send(()).unwrap();
        self.may_end.lock().unwrap().recv_timeout(LONGEST).unwrap();
        false
    }

    fn keeps_memory(&self) -> bool {
        true
    }

    fn rest(&self) {
        self.rested.fetch_add(1, SeqCst);
    }
}

struct Test {
    work: Arc<Told>,
    asker: Asker,
    began: Receiver<()>,
    may_end: Sender<()>,
}

impl Test {
    fn new(workers: &Workers) -> Self {
        let ((told, began), (may_end, waits)) = (channel(), channel());
        let (may_end_there, rested) = (Mutex::new(waits), AtomicUsize::new(0));
        let work = Arc::new(Told { began: told, may_end: may_end_there, rested });
        Self { asker: workers.serve(&work, 1).unwrap(), work, began, may_end }
    }

    fn run(&self) {
        self.asker.ask();
        self.began.recv_timeout(LONGEST).unwrap();
        self.may_end.send(()).unwrap();
    }
}

fn workers(threads_max: usize) -> Workers {
    let workers = Workers::new(Arc::default());
    workers.shared.lock().threads_max = threads_max;
    workers
}

#[test]
fn many_structures_share_few_threads_which_go_with_the_volume() {
    let workers = workers(2);
    let all: Vec<_> = (0..50).map(|_| Test::new(&workers)).collect();
    assert_eq!(workers.threads(), 1, "one waits for work");
    for _ in 0..3 {
        all.iter().for_each(|it| it.asker.ask());
        all.iter().for_each(|it| it.may_end.send(()).unwrap());
        all.iter().for_each(|it| it.began.recv_timeout(LONGEST).unwrap());
    }
    assert_eq!(workers.threads(), 2);
    all.iter().for_each(|it| it.asker.end());
    // All but two of those that have worked have freed their memory, however often they worked.
    let rested = all.iter().filter(|it| it.work.rested.load(SeqCst) > 0).count();
    assert!(rested >= 48, "{rested}");
    workers.stop();
    assert_eq!(workers.threads(), 0);
}

#[test]
fn asking_twice_is_asking_once_until_a_thread_begins() {
    let workers = workers(1);
    let (first, second) = (Test::new(&workers), Test::new(&workers));
    first.asker.ask();
    first.began.recv_timeout(LONGEST).unwrap();
    (0..3).for_each(|_| second.asker.ask());
    assert_eq!(workers.shared.lock().asking.len(), 1);
    first.asker.ask();
    first.may_end.send(()).unwrap();
    second.began.recv_timeout(LONGEST).unwrap();
    second.may_end.send(()).unwrap();
    first.began.recv_timeout(LONGEST).unwrap();
    first.may_end.send(()).unwrap();
    workers.stop();
}

#[test]
fn who_waits_for_a_job_that_waits_for_another_gets_one_more_thread() {
    let workers = workers(1);
    let (first, second) = (Test::new(&workers), Test::new(&workers));
    first.asker.ask();
    first.began.recv_timeout(LONGEST).unwrap();
    second.asker.ask();
    // The first ends only after the second has run.
    (0..LOOKS - 1).for_each(|_| second.asker.help_starving());
    assert_eq!(workers.threads(), 1);
    second.asker.help_starving();
    assert_eq!(workers.threads(), 2);
    second.began.recv_timeout(LONGEST).unwrap();
    [&first, &second].into_iter().for_each(|it| it.may_end.send(()).unwrap());
    workers.stop();
}

#[test]
fn those_that_work_in_periods_get_a_thread_also_while_all_others_are_busy() {
    let workers = workers(1);
    let (busy, other, periodic) = (Test::new(&workers), Test::new(&workers), Test::new(&workers));
    busy.asker.ask();
    busy.began.recv_timeout(LONGEST).unwrap();
    other.asker.ask();
    periodic.asker.ask();
    workers.repeat(&periodic.asker, Duration::from_millis(1)).unwrap();
    for _ in 0..3 {
        periodic.began.recv_timeout(LONGEST).unwrap();
        periodic.may_end.send(()).unwrap();
    }
    // While one waits, the next period finds all threads busy.
    assert!((2..=1 + THREADS_FOR_DUE_MAX).contains(&workers.threads()));
    std::thread::scope(|scope| {
        scope.spawn(|| periodic.asker.end());
        // More jobs may have begun.
        (0..100).for_each(|_| periodic.may_end.send(()).unwrap());
    });
    assert!(workers.shared.lock().periodic.is_empty());
    [&busy, &other].into_iter().for_each(|it| it.may_end.send(()).unwrap());
    other.began.recv_timeout(LONGEST).unwrap();
    workers.stop();
}

/// Each new thread took the same periodic work again, which waited for a flush that none of them came to: a process had
/// hundreds of threads and stood still.
#[test]
fn periodic_work_that_waits_for_a_job_leaves_the_next_thread_to_that_job() {
    let workers = workers(1);
    let (periodic, other) = (Test::new(&workers), Test::new(&workers));
    workers.repeat(&periodic.asker, Duration::from_millis(1)).unwrap();
    periodic.began.recv_timeout(LONGEST).unwrap();
    // Its work waits while many periods pass, and another structure asks.
    other.asker.ask();
    std::thread::sleep(Duration::from_millis(20));
    (0..=LOOKS).for_each(|_| workers.help_starving());
    other.began.recv_timeout(LONGEST).unwrap();
    assert!(periodic.began.try_recv().is_err(), "one thread at a time does its work");
    other.may_end.send(()).unwrap();
    periodic.may_end.send(()).unwrap();
    periodic.began.recv_timeout(LONGEST).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| periodic.asker.end());
        // More jobs may have begun.
        (0..100).for_each(|_| periodic.may_end.send(()).unwrap());
    });
    workers.stop();
}

#[test]
fn after_the_end_nothing_runs_and_no_thread_refers_to_the_structure() {
    let workers = workers(2);
    let test = Test::new(&workers);
    test.asker.ask();
    test.began.recv_timeout(LONGEST).unwrap();
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| test.asker.end());
        while !test.asker.source.asks.has_ended.load(SeqCst) {
            assert!(!ending.is_finished());
            std::thread::yield_now();
        }
        test.asker.ask();
        assert!(!ending.is_finished());
        test.may_end.send(()).unwrap();
    });
    test.asker.ask();
    assert_eq!(Arc::strong_count(&test.work), 1);
    assert!(workers.shared.lock().asking.is_empty());
    workers.stop();
}

#[test]
fn a_panic_poisons_the_volume_and_the_thread_goes_on() {
    struct Panics;
    impl BackgroundWork for Panics {
        fn work(&self) -> bool {
            panic!("on purpose");
        }
    }
    let poison = Arc::<Poison>::default();
    let workers = Workers::new(Arc::clone(&poison));
    let panics = Arc::new(Panics);
    let asker = workers.serve(&panics, 1).unwrap();
    asker.ask();
    Test::new(&workers).run();
    asker.end();
    assert!(poison.is_set());
    workers.stop();
}
