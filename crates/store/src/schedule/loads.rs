//! The choice of the channel to serve next.
//!
//! Each channel with waiting requests has a key, and the smallest is served first:
//!
//! ```text
//!   127        104 103         80 79                     16 15        0
//!   | of its bus  | of its own   | arrival of the first    | its slot  |
//!   |    in flight               |    of its line          |           |
//! ```
//!
//! Channels form groups of about the square root of their number, or one group per bus, and each group knows
//! its smallest key. So the next one is found among the groups, and only a started request makes its group
//! scan its channels again: a dozen comparisons for 32 channels, and 64 for a thousand.
//!
//! Where buses serve one read at a time, keys have no load of their channel: a bus serves its oldest request, and then
//! more of the same channel, until that line is empty or the run has reached its maximum.

/// The key of an empty line, after all others.
const NOBODY: u128 = u128::MAX;
const BUS_SHIFT: u32 = 104;
const LOAD_SHIFT: u32 = 80;
const ARRIVAL_SHIFT: u32 = 16;
/// The number of slots that their field can distinguish: never more than twice the number of channels is used.
const SLOTS_MAX: usize = 1 << ARRIVAL_SHIFT;
/// The number of requests in flight that a field can hold.
pub(super) const IN_FLIGHT_MAX: usize = (1 << (BUS_SHIFT - LOAD_SHIFT)) - 1;

/// The load of channels and buses, and the order of the channels.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    /// The slot of each channel.
    slot_of: Vec<u32>,
    /// By slot: the key without its bus, and the number of requests in flight.
    keys: Vec<u128>,
    in_flight: Vec<u32>,
    groups: Vec<Group>,
    /// The number of slots of a group, as a power of two.
    group_bits: u32,
    /// The amount that one request in flight adds to a group's key: 0 if groups are not buses.
    bus_unit: u128,
    /// The most requests of a channel that its bus starts one after another; 1 if others of the bus come first.
    run_max: u32,
}

#[derive(Clone, Debug)]
struct Group {
    /// The smallest key of its channels.
    first: u128,
    /// The part of the key that the load of its bus adds.
    bus: u128,
    run: Run,
}

/// A run of requests of one channel that a bus starts one after another.
#[derive(Clone, Copy, Default, Debug)]
struct Run {
    /// The slot of the channel that was last served.
    slot: usize,
    /// The number of requests of it that may still follow at once.
    left: u32,
}

impl Loads {
    /// Creates the loads of idle channels. Channel c is on bus c mod `buses`; with one bus for all, buses do not count.
    pub fn new(channels: u32, buses: u32) -> Self {
        assert!(channels > 0, "a schedule needs a channel");
        assert!(channels.is_multiple_of(buses), "{channels} channels on {buses} buses");
        let are_buses = buses > 1;
        let group_bits = match channels / buses {
            per_bus if are_buses => per_bus.next_power_of_two().trailing_zeros(),
            all => all.ilog2() / 2,
        };
        let groups = if are_buses { buses } else { channels.div_ceil(1 << group_bits) };
        let slots = (groups as usize) << group_bits;
        assert!(slots <= SLOTS_MAX, "{channels} channels on {buses} buses are too many");
        let slot = |channel: u32| ((channel % groups) << group_bits) + channel / groups;
        Self {
            slot_of: (0..channels).map(slot).collect(),
            keys: vec![NOBODY; slots],
            in_flight: vec![0; slots],
            groups: vec![Group { first: NOBODY, bus: 0, run: Run::default() }; groups as usize],
            group_bits,
            bus_unit: if are_buses { 1 << BUS_SHIFT } else { 0 },
            run_max: 1,
        }
    }

    /// The same loads, where each bus serves the channels in runs of up to `run_max` requests.
    pub fn in_runs(self, run_max: u32) -> Self {
        assert!(self.bus_unit > 0, "runs are for channels that share buses");
        Self { run_max, ..self }
    }

    /// The number of slots; some may belong to no channel.
    pub fn slots(&self) -> usize {
        self.keys.len()
    }

    /// The slot of a channel.
    pub fn slot(&self, channel: u32) -> usize {
        self.slot_of[channel as usize] as usize
    }

    /// The slot to serve next, if any request waits.
    pub fn first(&self) -> usize {
        if self.is_single() {
            return 0;
        }
        let keys = self.groups.iter().map(|group| group.first | group.bus);
        let first = keys.fold(NOBODY, u128::min);
        let oldest = first as usize % SLOTS_MAX;
        let run = self.groups[oldest >> self.group_bits].run;
        if run.left > 0 && self.keys[run.slot] != NOBODY { run.slot } else { oldest }
    }

    /// Notes that a request has arrived in an empty line.
    pub fn came(&mut self, slot: usize, arrival: u64) {
        if self.is_single() {
            return;
        }
        self.keys[slot] = self.key(slot, arrival);
        self.improved(slot);
    }

    /// Notes that the first request of the first slot's line was started; `next` is the arrival of the next, if any.
    pub fn started(&mut self, slot: usize, next: Option<u64>) {
        self.in_flight[slot] += 1;
        if self.is_single() {
            return;
        }
        self.keys[slot] = next.map_or(NOBODY, |arrival| self.key(slot, arrival));
        let group = slot >> self.group_bits;
        let members = group << self.group_bits..(group + 1) << self.group_bits;
        let Group { bus, run, .. } = self.groups[group];
        let first = self.keys[members].iter().copied().fold(NOBODY, u128::min);
        let goes_on = run.left > 0 && run.slot == slot;
        let left = if goes_on { run.left } else { self.run_max } - 1;
        self.groups[group] = Group { first, bus: bus + self.bus_unit, run: Run { slot, left } };
    }

    /// Notes that a started request has ended.
    pub fn ended(&mut self, slot: usize) {
        let left = self.in_flight[slot].checked_sub(1);
        self.in_flight[slot] = left.expect("only what was started can end");
        if self.is_single() {
            return;
        }
        self.groups[slot >> self.group_bits].bus -= self.bus_unit;
        if self.run_max == 1 && self.keys[slot] != NOBODY {
            self.keys[slot] -= 1 << LOAD_SHIFT;
            self.improved(slot);
        }
    }

    /// Returns whether there is only one channel, and so no key to maintain.
    fn is_single(&self) -> bool {
        self.keys.len() == 1
    }

    fn improved(&mut self, slot: usize) {
        let group = &mut self.groups[slot >> self.group_bits];
        group.first = group.first.min(self.keys[slot]);
    }

    fn key(&self, slot: usize, arrival: u64) -> u128 {
        let load = if self.run_max == 1 { u128::from(self.in_flight[slot]) } else { 0 };
        load << LOAD_SHIFT | u128::from(arrival) << ARRIVAL_SHIFT | slot as u128
    }
}
