//! Plays a tape against a model of a drive: virtual threads, in virtual time.
//!
//! Operation `i` belongs to thread `i % threads`, which does its operations one after another: first the
//! processor's work, then wave after wave of requests. Each thread has a core of its own. Threads wait for
//! each other only at the drive, so the outcome is exact and always the same.

use nandex_sim::{Done, Model, Request};

use crate::Latencies;
use crate::tape::{Act, Tape};

/// The threads that play a tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Player {
    /// Virtual threads, at least one.
    pub threads: usize,
    /// The CPU time of a lookup, in nanoseconds.
    pub lookup_cpu_ns: u64,
    /// The CPU time of an insert, in nanoseconds.
    pub insert_cpu_ns: u64,
    /// The pause of a thread before each operation, in nanoseconds. It is not part of the latency.
    pub pause_ns: u64,
}

/// The result of playing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// The latency of each operation in nanoseconds, in the order of the tape.
    pub latencies_ns: Vec<u64>,
    acts: Vec<Act>,
    /// The time from the first operation's begin to the last one's end, in nanoseconds.
    pub elapsed_ns: u64,
}

impl Played {
    /// Returns the latencies of the operations of one kind, from operation `from` of the tape on.
    #[must_use]
    pub fn of(&self, act: Act, from: usize) -> Latencies {
        let all = self.acts.iter().zip(&self.latencies_ns).skip(from);
        all.filter(|(it, _)| **it == act).map(|(_, ns)| *ns).collect()
    }

    /// Returns the latencies of all operations from operation `from` on.
    #[must_use]
    pub fn all(&self, from: usize) -> Latencies {
        self.latencies_ns.iter().skip(from).copied().collect()
    }

    /// Returns the operations in a second.
    #[must_use]
    pub fn operations_per_s(&self) -> f64 {
        self.latencies_ns.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    operation: usize,
    start_ns: u64,
    steps_done: usize,
    in_flight: usize,
}

/// A play in progress.
struct Stage<'a> {
    player: Player,
    tape: &'a Tape,
    model: &'a mut dyn Model,
    threads: Vec<Thread>,
    requests: u64,
    latencies_ns: Vec<u64>,
    end_ns: u64,
}

impl Player {
    /// Returns a player of one thread, with the same CPU time for every operation.
    #[must_use]
    pub const fn single(cpu_ns: u64) -> Self {
        Self { threads: 1, lookup_cpu_ns: cpu_ns, insert_cpu_ns: cpu_ns, pause_ns: 0 }
    }

    /// Plays the whole tape, from the model's present on.
    ///
    /// # Panics
    /// Panics if a request is beyond the model's pages.
    #[must_use]
    pub fn play(self, tape: &Tape, model: &mut dyn Model) -> Played {
        let begin_ns = model.now_ns();
        let count = self.threads.clamp(1, tape.len().max(1));
        let mut stage = Stage {
            player: self,
            tape,
            model,
            threads: vec![Thread::default(); count],
            requests: 0,
            latencies_ns: vec![0; tape.len()],
            end_ns: begin_ns,
        };
        (0..count).for_each(|thread| stage.begin(thread, thread, begin_ns));
        stage.run();
        let acts = tape.operations().map(|(act, _)| act).collect();
        let elapsed_ns = stage.end_ns - begin_ns;
        Played { latencies_ns: stage.latencies_ns, acts, elapsed_ns }
    }

    fn cpu_ns(self, act: Act) -> u64 {
        match act {
            Act::Lookup => self.lookup_cpu_ns,
            Act::Insert => self.insert_cpu_ns,
        }
    }
}

impl Stage<'_> {
    fn run(&mut self) {
        let mut done: Vec<Done> = Vec::new();
        let mut goes_on = true;
        while goes_on {
            goes_on = self.model.step(&mut done);
            for done in done.drain(..) {
                let thread = (done.request.token % self.threads.len() as u64) as usize;
                self.threads[thread].in_flight -= 1;
                if self.threads[thread].in_flight == 0 {
                    self.go_on(thread, done.finished_ns);
                }
            }
        }
    }

    /// Starts operations of a thread until one has requests for the drive.
    fn begin(&mut self, thread: usize, first: usize, mut now_ns: u64) {
        for operation in (first..self.tape.len()).step_by(self.threads.len()) {
            let start_ns = now_ns + self.player.pause_ns;
            let (act, steps) = self.tape.operation(operation);
            now_ns = start_ns + self.player.cpu_ns(act);
            self.threads[thread] = Thread { operation, start_ns, steps_done: 0, in_flight: 0 };
            if !steps.is_empty() {
                return self.submit_wave(thread, now_ns);
            }
            self.finish(thread, now_ns);
        }
    }

    /// Starts the next wave of the thread's operation, or its next operation.
    fn go_on(&mut self, thread: usize, now_ns: u64) {
        let Thread { operation, steps_done, .. } = self.threads[thread];
        if steps_done < self.tape.operation(operation).1.len() {
            return self.submit_wave(thread, now_ns);
        }
        self.finish(thread, now_ns);
        self.begin(thread, operation + self.threads.len(), now_ns);
    }

    fn submit_wave(&mut self, thread: usize, now_ns: u64) {
        let Thread { operation, steps_done, .. } = self.threads[thread];
        let (_, steps) = self.tape.operation(operation);
        let steps = &steps[steps_done..];
        let wave = steps.iter().take_while(|step| step.wave == steps[0].wave);
        let mut count = 0;
        for step in wave {
            let token = self.requests * self.threads.len() as u64 + thread as u64;
            self.requests += 1;
            count += 1;
            let request = Request { token, kind: step.kind, page: step.page, pages: step.pages };
            let end = step.page + u64::from(step.pages);
            assert!(
                end <= self.model.page_count(),
                "{request:?} on {} pages",
                self.model.page_count()
            );
            self.model.submit_at(now_ns, request);
        }
        let state = &mut self.threads[thread];
        state.in_flight = count;
        state.steps_done += count;
    }

    fn finish(&mut self, thread: usize, now_ns: u64) {
        let Thread { operation, start_ns, .. } = self.threads[thread];
        self.latencies_ns[operation] = now_ns - start_ns;
        self.end_ns = self.end_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Step;
    use nandex_sim::preset::Preset;
    use nandex_sim::{Fill, RequestKind};

    fn read(page: u64, wave: u32) -> Step {
        Step { kind: RequestKind::Read, page, pages: 1, wave }
    }

    fn intel() -> Box<dyn Model> {
        let preset = Preset::named("intel-x18m-paper").expect("it is built in");
        preset.build(Fill::Sequential).expect("it can be")
    }

    #[test]
    fn an_operation_takes_its_cpu_and_one_read_after_another() {
        let mut tape = Tape::default();
        tape.push(Act::Lookup, &[]);
        tape.push(Act::Lookup, &[read(7, 0), read(9_000, 1)]);
        tape.push(Act::Insert, &[]);
        let player = Player { insert_cpu_ns: 3_000, ..Player::single(5_000) };
        let played = player.play(&tape, &mut *intel());
        // NSDI 2010, 7.2.2: a random read of this drive takes 0.15 ms.
        assert_eq!(played.latencies_ns, [5_000, 305_000, 3_000]);
        assert_eq!(played.elapsed_ns, 313_000);
        assert_eq!(played.of(Act::Lookup, 1).max_ms(), 0.305);
        assert_eq!(played.all(1).count(), 2);
    }

    #[test]
    fn reads_of_one_wave_and_of_several_threads_overlap() {
        let mut wave = Tape::default();
        wave.push(Act::Lookup, &[read(0, 0), read(1, 0)]);
        let together = Player::single(0).play(&wave, &mut *intel()).elapsed_ns;
        assert!((150_000..300_000).contains(&together), "{together}");
        let mut many = Tape::default();
        (0..200).for_each(|number| many.push(Act::Lookup, &[read(number * 37, 0)]));
        let elapsed = |threads| {
            Player { threads, ..Player::single(1_000) }.play(&many, &mut *intel()).elapsed_ns
        };
        assert_eq!(elapsed(1), 200 * 151_000);
        assert!(elapsed(8) * 4 < elapsed(1), "{}", elapsed(8));
        assert!(elapsed(16) <= elapsed(8));
    }

    #[test]
    fn a_pause_passes_and_is_no_latency() {
        let mut tape = Tape::default();
        tape.push(Act::Insert, &[read(1, 0)]);
        tape.push(Act::Insert, &[read(2, 0)]);
        let player = Player { pause_ns: 1_000_000, ..Player::single(0) };
        let played = player.play(&tape, &mut *intel());
        assert_eq!(played.latencies_ns, [150_000, 150_000]);
        assert_eq!(played.elapsed_ns, 2_300_000);
    }
}
