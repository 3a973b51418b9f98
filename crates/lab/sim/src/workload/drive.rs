//! The loops between a workload and a model: open, by time, and closed, by completions.

use std::convert::Infallible;

use super::arrivals::Arrival;
use crate::{Done, Model, Request};

/// Submits each request when it arrives, and passes ended ones to `sink` in the order in which they end.
///
/// Arrivals count from the model's present and must not go back in time. Returns when nothing is pending.
/// Memory grows only with the requests in flight.
pub fn open_loop(
    model: &mut dyn Model,
    arrivals: impl IntoIterator<Item = Arrival>,
    sink: impl FnMut(&Done),
) {
    let arrivals = arrivals.into_iter().map(Ok::<_, Infallible>);
    let Ok(()) = try_open_loop(model, arrivals, sink);
}

/// Submits requests as [`open_loop`] does, for arrivals that may fail, such as those of a trace.
///
/// # Errors
/// Returns the first failure. Earlier arrivals have ended all the same, and were passed to the sink.
pub fn try_open_loop<E>(
    model: &mut dyn Model,
    arrivals: impl IntoIterator<Item = Result<Arrival, E>>,
    mut sink: impl FnMut(&Done),
) -> Result<(), E> {
    let start_ns = model.now_ns();
    let mut done = Vec::new();
    let fed = arrivals.into_iter().try_for_each(|arrival| {
        let arrival = arrival?;
        let at_ns = start_ns.saturating_add(arrival.at_ns);
        model.advance(at_ns, &mut done);
        done.drain(..).for_each(|done| sink(&done));
        model.submit_at(at_ns, arrival.request);
        Ok(())
    });
    drain(model, &mut sink);
    fed
}

/// Keeps `depth` requests (at least 1) at the device: when one ends the next is submitted at that time.
///
/// Returns when the requests are used up and nothing is pending.
pub fn closed_loop(
    model: &mut dyn Model,
    requests: impl IntoIterator<Item = Request>,
    depth: u32,
    mut sink: impl FnMut(&Done),
) {
    let mut requests = requests.into_iter();
    let first = usize::try_from(depth.max(1)).unwrap_or(usize::MAX);
    requests.by_ref().take(first).for_each(|request| model.submit(request));
    let mut done = Vec::new();
    while model.step(&mut done) {
        for done in done.drain(..) {
            sink(&done);
            if let Some(request) = requests.next() {
                model.submit(request);
            }
        }
    }
}

fn drain(model: &mut dyn Model, sink: &mut impl FnMut(&Done)) {
    let mut done = Vec::new();
    loop {
        let more = model.step(&mut done);
        done.drain(..).for_each(|done| sink(&done));
        if !more {
            return;
        }
    }
}
