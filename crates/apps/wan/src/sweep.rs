//! Power cuts after every operation of a cache's life, and the state that the next opening finds.

use std::sync::Arc;

use nandex::{Threads, Volume, VolumeOpenOptions, VolumeOptions};
use nandex_sim::{Cut, Image, SimDevice};

use crate::testing::{FINE, SMALL, cache, edited, noise, text};
use crate::tests::transferred;
use crate::*;

/// One in this many recoveries is cut itself, at every operation of this many.
const DEEPER: u64 = 20;
const STRIDE: usize = 5;

fn create(device: SimDevice) -> Cache {
    let (threads, volume_id) = (Threads::Inline, Some(7));
    let log_bytes = SMALL.log_bytes().unwrap();
    let options = VolumeOptions { threads, volume_id, log_bytes, ..VolumeOptions::tiny() };
    Cache::create_in(&Volume::create(Arc::new(device), options).unwrap(), SMALL).unwrap()
}

fn open(device: SimDevice) -> Cache {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Cache::open_in(&Volume::open(Arc::new(device), options).unwrap()).unwrap()
}

/// Creates a sender that has sent these streams, and has seen no answer.
fn sender(streams: &[Vec<u8>]) -> Cache {
    let here = cache();
    for stream in streams {
        encode(&here, &mut &stream[..], &mut std::io::sink(), FINE).unwrap();
    }
    here
}

/// Opens the image after a cut, and sends all streams: those from before the cut without requests. Returns the cuts
/// during that.
fn survive(image: Image, (streams, before): (&[Vec<u8>], usize), story: &str) -> Vec<Cut> {
    let here = sender(streams);
    let device = SimDevice::instant().with_image(image);
    device.record_cuts();
    let there = open(device.clone());
    for (at, stream) in streams.iter().enumerate() {
        let (sent, _) = transferred(&here, &there, stream);
        assert!(at >= before || sent.again_segments == 0, "{story}: stream {at} is not there");
    }
    drop(there);
    let cuts = device.take_cuts();
    let there = open(device);
    for (at, stream) in streams.iter().enumerate() {
        let (sent, _) = transferred(&here, &there, stream);
        assert_eq!(sent.again_segments, 0, "{story}: stream {at} was forgotten");
    }
    cuts
}

#[test]
fn after_a_power_cut_at_any_operation_the_cache_has_what_was_taken_before() {
    let first = text(60_000, 1);
    let streams = [first.clone(), edited(&first, 10, 2), noise(150_000, 3)];
    let here = cache();
    let device = SimDevice::instant();
    device.record_cuts();
    let there = create(device.clone());
    // The remains of a cache that is not created yet are of no use.
    let _ = device.take_cuts();
    let mut cuts = 0_u64;
    for done in 1..=streams.len() {
        transferred(&here, &there, &streams[done - 1]);
        for cut in device.take_cuts() {
            for seed in [0, 1 + cuts] {
                let story = format!("stream {done} cut after {} operations, {seed}", cut.operation);
                let known = (&streams[..done], done - 1);
                let again = survive(cut.survivors(seed), known, &story);
                let some = again.iter().filter(|_| cuts.is_multiple_of(DEEPER)).step_by(STRIDE);
                for second in some {
                    let story = format!("{story}, and again after {}", second.operation);
                    survive(second.survivors(seed), known, &story);
                }
            }
            cuts += 1;
        }
    }
    assert!(cuts > 10, "{cuts} cuts");
}
