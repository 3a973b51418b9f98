//! Workloads from outside: the same seed, the right shares, and loops that lose nothing.

use nandex_sim::workload::{
    Arrival, Gaps, Pattern, Spread, Workload, closed_loop, open_loop, try_open_loop,
};
use nandex_sim::{Done, Model, Parts, Request, RequestKind};
use proptest::prelude::*;

/// Returns a number that identifies a stream: it covers each arrival's time, page and length, in order.
fn fingerprint(arrivals: impl Iterator<Item = Arrival>) -> u64 {
    arrivals.fold(0, |hash: u64, Arrival { at_ns, request }| {
        let words = [at_ns, request.page, u64::from(request.pages)];
        words.into_iter().fold(hash, |hash, word| {
            (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
    })
}

fn skewed() -> Workload {
    let pattern = Pattern::Zipf { exponent: 0.99, spread: Spread::Scattered };
    Workload { pattern, read_ppm: 700_000, seed: 9, ..Workload::pages(1 << 20) }
}

#[test]
fn a_seed_gives_the_same_arrivals_on_every_machine() {
    let gaps = Gaps::Exponential { mean_ns: 100_000 };
    let arrivals = skewed().arrivals(gaps).unwrap();
    assert_eq!(fingerprint(arrivals.take(100_000)), PINNED);
    let other = Workload { seed: 10, ..skewed() }.arrivals(gaps).unwrap();
    assert_ne!(fingerprint(other.take(100_000)), PINNED);
}

/// The results of the first machine, which all others must reproduce.
const PINNED: u64 = 0xA59F_E4AE_DA1A_ED0C;

#[test]
fn the_share_of_reads_moves_no_request() {
    let pages = |read_ppm| {
        let workload = Workload { read_ppm, ..skewed() };
        workload.requests().unwrap().take(1000).map(|r| r.page).collect::<Vec<_>>()
    };
    assert_eq!(pages(0), pages(500_000));
}

#[test]
fn reads_have_their_share() {
    let reads = skewed().requests().unwrap().take(100_000);
    let reads = reads.filter(|request| request.kind == RequestKind::Read).count();
    // Six standard deviations of a binomial with p = 0.7 are 870.
    assert!(reads.abs_diff(70_000) < 870, "{reads}");
}

#[test]
fn exponential_gaps_have_their_mean_and_constant_ones_are_constant() {
    let last = |gaps| skewed().arrivals(gaps).unwrap().nth(99_999).unwrap().at_ns;
    assert_eq!(last(Gaps::Constant { gap_ns: 7 }), 700_000);
    // The mean of 100,000 gaps has a standard deviation of 0.32 %; six are 1.9 %.
    let mean = last(Gaps::Exponential { mean_ns: 1_000 }) / 100_000;
    assert!(mean.abs_diff(1_000) < 19, "{mean}");
}

#[test]
fn a_workload_that_cannot_be_made_says_what_to_do() {
    let refusals = [
        (
            Workload { request_pages: 0, ..Workload::pages(8) },
            "request_pages is 0, expected 1 to 8",
        ),
        (
            Workload { request_pages: 9, ..Workload::pages(8) },
            "request_pages is 9, expected 1 to 8",
        ),
        (Workload { read_ppm: 1_000_001, ..Workload::pages(8) }, "counts millionths"),
    ];
    for (workload, says) in refusals {
        let refusal = workload.requests().unwrap_err().to_string();
        assert!(refusal.contains(says), "{refusal}");
    }
}

/// Serves one request after the other in the order of arrival, 10 ns each.
#[derive(Debug, Default)]
struct OneServer {
    now_ns: u64,
    free_ns: u64,
    pending: std::collections::VecDeque<Done>,
    most_pending: usize,
}

impl Model for OneServer {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn page_count(&self) -> u64 {
        u64::MAX
    }

    fn submit_at(&mut self, at_ns: u64, request: Request) {
        assert!(at_ns >= self.now_ns, "a request arrived in the past");
        let start_ns = at_ns.max(self.free_ns);
        self.free_ns = start_ns + 10;
        let parts = Parts { queue_ns: start_ns - at_ns, array_ns: 10, ..Parts::default() };
        let (submitted_ns, finished_ns) = (at_ns, self.free_ns);
        self.pending.push_back(Done { request, submitted_ns, finished_ns, parts });
        self.most_pending = self.most_pending.max(self.pending.len());
    }

    fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let Some(next) = self.pending.pop_front() else { return false };
        self.now_ns = next.finished_ns;
        done.push(next);
        true
    }

    fn advance(&mut self, to_ns: u64, done: &mut Vec<Done>) {
        while self.pending.front().is_some_and(|next| next.finished_ns <= to_ns) {
            self.step(done);
        }
        self.now_ns = to_ns;
    }
}

#[test]
fn a_closed_loop_keeps_its_depth_and_ends_when_all_is_done() {
    for (depth, count) in [(1, 100), (8, 100), (8, 3), (0, 5)] {
        let mut model = OneServer::default();
        let mut ended = 0;
        let requests = Workload::pages(64).requests().unwrap().take(count);
        closed_loop(&mut model, requests, depth, |_| ended += 1);
        let kept = usize::try_from(depth.max(1)).unwrap().min(count);
        assert_eq!((ended, model.most_pending), (count, kept));
        assert_eq!(model.now_ns, 10 * count as u64, "the server was never idle");
    }
}

#[test]
fn an_open_loop_submits_at_the_moments_of_arrival_from_the_models_present_on() {
    let mut model = OneServer::default();
    model.advance(1_000, &mut Vec::new());
    let arrivals = Workload::pages(64).arrivals(Gaps::Constant { gap_ns: 25 }).unwrap();
    let mut ended = Vec::new();
    open_loop(&mut model, arrivals.take(4), |done| {
        ended.push((done.submitted_ns, done.finished_ns))
    });
    assert_eq!(ended, [(1_025, 1_035), (1_050, 1_060), (1_075, 1_085), (1_100, 1_110)]);
}

#[test]
fn what_arrived_before_a_trace_broke_off_is_served() {
    let arrival = |at_ns| {
        let request = Request { token: at_ns, kind: RequestKind::Read, page: 0, pages: 1 };
        Arrival { at_ns, request }
    };
    let mut model = OneServer::default();
    let mut ended = Vec::new();
    let arrivals = [Ok(arrival(5)), Ok(arrival(7)), Err("line 3"), Ok(arrival(9))];
    let fed = try_open_loop(&mut model, arrivals, |done| ended.push(done.finished_ns));
    assert_eq!((fed, ended), (Err("line 3"), vec![15, 25]));
}

proptest! {
    #[test]
    fn a_folded_request_is_on_the_device(page: u64, pages: u32, page_count in 1u64..1 << 40) {
        let request = Request { token: 1, kind: RequestKind::Write, page, pages };
        let folded = Arrival { at_ns: 2, request }.folded(page_count).request;
        prop_assert!(folded.page + u64::from(folded.pages) <= page_count);
        prop_assert_eq!(u64::from(folded.pages), u64::from(pages).min(page_count));
        if page < page_count && u64::from(pages) <= page_count - page {
            prop_assert_eq!(folded, request);
        }
    }

    #[test]
    fn requests_are_aligned_and_within_their_pages(
        page_count in 1u64..5_000,
        request_pages in 1u32..40,
        seed: u64,
        law in 0..4,
        spread in prop_oneof![Just(Spread::Together), Just(Spread::Scattered)],
    ) {
        prop_assume!(page_count >= u64::from(request_pages) * 2);
        let pattern = match law {
            0 => Pattern::Sequential { from: 1 },
            1 => Pattern::Uniform,
            2 => Pattern::Zipf { exponent: 0.8, spread },
            _ => Pattern::HotCold { hot_places_ppm: 500_000, hot_requests_ppm: 800_000, spread },
        };
        let workload = Workload { page_count, request_pages, read_ppm: 1, pattern, seed };
        for (token, request) in workload.requests().unwrap().take(50).enumerate() {
            prop_assert_eq!(request.token, token as u64);
            prop_assert_eq!(request.pages, request_pages);
            prop_assert_eq!(request.page % u64::from(request_pages), 0);
            prop_assert!(request.page + u64::from(request_pages) <= page_count);
        }
    }
}
