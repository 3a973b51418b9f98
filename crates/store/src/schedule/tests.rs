//! A schedule against the simplest one, against the paper's passes, and the longest wait of a request.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::passes::select;
use super::*;

/// The same schedule, by a scan of all waiting requests.
struct Plain {
    buses: u32,
    /// Requests of a run; 1 for a schedule without runs.
    run_max: u32,
    depth: usize,
    /// Channel and name, in the order of arrival.
    waiting: Vec<(u32, usize)>,
    in_flight: Vec<u32>,
    /// By bus: the channel that it served last, and the number of its requests that may follow.
    runs: Vec<(u32, u32)>,
}

impl Plain {
    fn new(shape: Shape) -> Self {
        let Shape { buses, run_max, depth, .. } = shape;
        let runs = vec![(0, 0); buses as usize];
        Self { buses, run_max, depth, waiting: Vec::new(), in_flight: Vec::new(), runs }
    }

    fn load(&self, is_alike: impl Fn(u32) -> bool) -> usize {
        self.in_flight.iter().filter(|channel| is_alike(**channel)).count()
    }

    fn next(&mut self) -> Option<(u32, usize)> {
        if self.in_flight.len() >= self.depth {
            return None;
        }
        let index = if self.run_max > 1 { self.of_a_run()? } else { self.least_loaded()? };
        let request = self.waiting.remove(index);
        self.in_flight.push(request.0);
        let run = &mut self.runs[(request.0 % self.buses) as usize];
        let left = if run.0 == request.0 && run.1 > 0 { run.1 } else { self.run_max };
        *run = (request.0, left - 1);
        Some(request)
    }

    fn bus_load(&self, bus: u32) -> usize {
        self.load(|it| it % self.buses == bus)
    }

    fn least_loaded(&self) -> Option<usize> {
        let key = |index: &usize| {
            let channel = self.waiting[*index].0;
            (self.bus_load(channel % self.buses), self.load(|it| it == channel), *index)
        };
        (0..self.waiting.len()).min_by_key(key)
    }

    fn of_a_run(&self) -> Option<usize> {
        let key = |index: &usize| (self.bus_load(self.waiting[*index].0 % self.buses), *index);
        let oldest = (0..self.waiting.len()).min_by_key(key)?;
        let (channel, left) = self.runs[(self.waiting[oldest].0 % self.buses) as usize];
        let next = self.waiting.iter().position(|(it, _)| *it == channel && left > 0);
        Some(next.unwrap_or(oldest))
    }
}

/// An action of a caller.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u32),
    Next,
    /// The n-th of the requests in flight ends.
    Done(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u32>().prop_map(Step::Push),
        3 => Just(Step::Next),
        2 => any::<usize>().prop_map(Step::Done),
    ]
}

/// Channels and a depth.
#[derive(Clone, Copy, Debug)]
struct Shape {
    buses: u32,
    per_bus: u32,
    /// 1 if buses serve several reads at a time.
    run_max: u32,
    depth: usize,
}

fn shape() -> impl Strategy<Value = Shape> {
    let run_max = prop_oneof![Just(1), 2..5_u32, Just(RUN_MAX)];
    (1..7_u32, 1..6_u32, run_max, 0..20_usize).prop_map(|(buses, per_bus, run_max, depth)| {
        let run_max = if buses > 1 { run_max } else { 1 };
        Shape { buses, per_bus, run_max, depth }
    })
}

fn schedule<T>(shape: Shape) -> Schedule<T> {
    let loads = Loads::new(shape.buses * shape.per_bus, shape.buses);
    let loads = if shape.run_max > 1 { loads.in_runs(shape.run_max) } else { loads };
    Schedule::with_loads(loads, shape.depth)
}

proptest! {
    #[test]
    fn it_starts_what_looking_at_everything_would_start(
        shape in shape(),
        steps in vec(step(), 1..300),
    ) {
        let Shape { buses, per_bus, depth, .. } = shape;
        let mut schedule = schedule(shape);
        let mut plain = Plain::new(shape);
        for (name, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push(channel) => {
                    let request = (channel % (buses * per_bus), name);
                    schedule.push(request.0, request);
                    plain.waiting.push(request);
                }
                Step::Next => prop_assert_eq!(schedule.next(), plain.next()),
                Step::Done(which) if !plain.in_flight.is_empty() => {
                    let count = plain.in_flight.len();
                    schedule.done(plain.in_flight.swap_remove(which % count));
                }
                Step::Done(_) => {}
            }
            prop_assert_eq!(schedule.waiting(), plain.waiting.len());
            prop_assert_eq!(schedule.in_flight(), plain.in_flight.len());
            prop_assert_eq!(schedule.is_full(), plain.in_flight.len() >= depth);
        }
    }

    #[test]
    fn with_one_channel_it_is_first_in_first_out(count in 0..50_usize, depth in 1..20_usize) {
        let mut schedule = Schedule::new(1, depth);
        (0..count).for_each(|request| schedule.push(0, request));
        let mut started = Vec::new();
        while schedule.waiting() > 0 {
            started.extend(std::iter::from_fn(|| schedule.next()));
            schedule.done(0);
        }
        prop_assert_eq!(started, (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn without_an_end_in_between_it_chooses_what_the_passes_choose(
        channels in vec(0..9_u32, 0..80),
        depth in 0..40_usize,
    ) {
        let mut schedule = Schedule::new(9, depth);
        for (request, channel) in channels.iter().enumerate() {
            schedule.push(*channel, request);
        }
        let started: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
        prop_assert_eq!(started, select(&channels, 9, depth));
    }

    #[test]
    fn a_selection_is_as_even_as_any_and_takes_the_first_of_each_channel(
        channels in vec(0..6_u32, 0..60),
        depth in 0..40_usize,
    ) {
        let selected = select(&channels, 6, depth);
        prop_assert_eq!(selected.len(), depth.min(channels.len()));
        let count = |of: u32| selected.iter().filter(|it| channels[**it] == of).count();
        for channel in 0..6 {
            let all: Vec<_> = (0..channels.len()).filter(|it| channels[*it] == channel).collect();
            let mine: Vec<_> =
                selected.iter().copied().filter(|it| channels[*it] == channel).collect();
            prop_assert_eq!(&mine[..], &all[..mine.len()]);
            // A channel that still has requests has at most one fewer than any other.
            if mine.len() < all.len() {
                prop_assert!((0..6).all(|other| count(other) <= mine.len() + 1));
            }
        }
    }

    #[test]
    fn no_pass_chooses_two_of_a_channel(channels in vec(0..6_u32, 0..60), depth in 0..40_usize) {
        // Requests arrive pass by pass, so each has as many of its channel before it as there were passes.
        let mut depths = [0; 6];
        let passes: Vec<usize> = select(&channels, 6, depth)
            .into_iter()
            .map(|request| {
                let channel = channels[request] as usize;
                depths[channel] += 1;
                depths[channel]
            })
            .collect();
        prop_assert!(passes.is_sorted(), "{:?}", passes);
        prop_assert!(passes.windows(2).all(|it| it[1] <= it[0] + 1), "{:?}", passes);
    }

    #[test]
    fn selections_take_each_request_once_and_the_oldest_every_time(
        channels in vec(0..6_u32, 0..60),
        depth in 1..40_usize,
    ) {
        let mut left: Vec<usize> = (0..channels.len()).collect();
        let mut taken = Vec::new();
        while !left.is_empty() {
            let of_left: Vec<u32> = left.iter().map(|request| channels[*request]).collect();
            let selected = select(&of_left, 6, depth);
            prop_assert_eq!(selected[0], 0);
            let chosen: Vec<usize> = selected.iter().map(|index| left[*index]).collect();
            left.retain(|request| !chosen.contains(request));
            taken.extend(chosen);
        }
        taken.sort_unstable();
        prop_assert_eq!(taken, (0..channels.len()).collect::<Vec<_>>());
    }

    #[test]
    fn nobody_waits_longer_than_is_said_however_many_come_later(
        shape in shape().prop_map(|it| Shape { depth: it.depth.max(1), ..it }),
        mut pushes in vec((any::<u32>(), 0..3_usize), 100..600),
    ) {
        let Shape { buses, per_bus, run_max, depth } = shape;
        let channels = buses * per_bus;
        let mut schedule = schedule(shape);
        // By name: channel, starts before its arrival, and starts that it may wait for.
        let mut asked: Vec<(u32, usize, usize)> = Vec::new();
        let mut waiting: Vec<usize> = Vec::new();
        let mut running: VecDeque<u32> = VecDeque::new();
        let mut starts = 0;
        pushes.iter_mut().for_each(|(channel, _)| *channel %= channels);
        for (channel, ends) in pushes {
            let shared = if buses == 1 { channels } else { buses };
            let is_near = |other: u32| other % shared == channel % shared;
            let same = waiting.iter().filter(|it| is_near(asked[**it].0)).count();
            let others = waiting.len() - same;
            waiting.push(asked.len());
            schedule.push(channel, asked.len());
            let may = ((same + 1) * 2 * depth + others) * run_max as usize;
            asked.push((channel, starts, may));
            while let Some(request) = schedule.next() {
                let (channel, before, may) = asked[request];
                prop_assert!(starts - before <= may, "{} of {may}", starts - before);
                waiting.retain(|it| *it != request);
                running.push_back(channel);
                starts += 1;
            }
            for channel in running.drain(..ends.min(running.len())) {
                schedule.done(channel);
            }
        }
    }
}

#[test]
fn a_channel_that_everybody_else_overtakes_gets_its_turn_once_it_is_idle() {
    let mut schedule = Schedule::new(2, 2);
    schedule.push(0, "slow");
    schedule.push(0, "old");
    assert_eq!(schedule.next(), Some("slow"));
    for _ in 0..5 {
        schedule.push(1, "new");
        assert_eq!(schedule.next(), Some("new"));
        schedule.done(1);
    }
    schedule.push(1, "young");
    schedule.done(0);
    assert_eq!(schedule.next(), Some("old"));
    assert_eq!(schedule.next(), Some("young"));
}

#[test]
fn of_channels_with_as_much_to_do_the_one_on_the_bus_with_less_is_served() {
    // Channels 0 and 2 are on bus 0, 1 and 3 on bus 1.
    let mut schedule = schedule(Shape { buses: 2, per_bus: 2, run_max: 1, depth: 4 });
    for channel in [0, 0, 2, 3] {
        schedule.push(channel, channel);
    }
    let started: Vec<u32> = std::iter::from_fn(|| schedule.next()).collect();
    assert_eq!(started, [0, 3, 2, 0]);
}

#[test]
fn a_bus_that_serves_one_read_at_a_time_goes_on_with_a_channel_until_its_run_is_over() {
    // Channels 0 and 2 are on bus 0, 1 and 3 on bus 1.
    let mut schedule = schedule(Shape { buses: 2, per_bus: 2, run_max: 3, depth: 9 });
    for request in ["0a", "2a", "0b", "3a", "0c", "0d", "2b", "1a", "1b"] {
        let channel = request[..1].parse().expect("a digit");
        schedule.push(channel, request);
    }
    let started: Vec<&str> = std::iter::from_fn(|| schedule.next()).collect();
    // Each bus in turn: on one three of channel 0, then the oldest; on the other one of channel 3, then channel 1.
    assert_eq!(started, ["0a", "3a", "0b", "1a", "0c", "1b", "2a", "2b", "0d"]);
}

#[test]
fn a_run_that_stops_for_want_of_requests_goes_on_before_older_ones_of_its_bus() {
    let mut schedule = schedule(Shape { buses: 2, per_bus: 2, run_max: 2, depth: 1 });
    schedule.push(0, "first");
    assert_eq!(schedule.next(), Some("first"));
    for (channel, request) in [(2, "old"), (0, "of the run"), (0, "after it")] {
        schedule.push(channel, request);
    }
    for (ended, request) in [(0, "of the run"), (0, "old"), (2, "after it")] {
        schedule.done(ended);
        assert_eq!(schedule.next(), Some(request));
    }
}

#[test]
#[should_panic(expected = "only what was started can end")]
fn what_was_not_started_cannot_end() {
    Schedule::<()>::new(4, 2).done(1);
}
