//! Any stream in segments of any lengths comes out of a live stream unchanged, whichever of two receivers'
//! caches it goes to. Caches stay from run to run, so that later streams refer to earlier ones.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use nandex_device::MemoryDevice;
use nandex_wan::live::{LiveOptions, LiveReceiver, LiveSender, Message, Received};
use nandex_wan::{CACHE_BYTES_MIN, Cache, CacheConfig, EncodeOptions, Owner};

/// The sender's cache, and those of two receivers.
fn caches() -> &'static [Arc<Cache>; 3] {
    static CACHES: OnceLock<[Arc<Cache>; 3]> = OnceLock::new();
    CACHES.get_or_init(|| {
        [0, 1, 2].map(|_| {
            let config = CacheConfig { content_bytes: CACHE_BYTES_MIN, ..CacheConfig::default() };
            Arc::new(Cache::create(Arc::new(MemoryDevice::new()), config).expect("it fits"))
        })
    })
}

/// Passes a message on as bytes, and the messages that follow from it back and forth.
fn pass(
    sender: &mut LiveSender,
    receiver: &mut LiveReceiver,
    message: Message,
    copy: &mut Vec<u8>,
) {
    let mut next = Some(message);
    while let Some(message) = next.take() {
        let mut wire = Vec::new();
        message.encode(&mut wire);
        let (message, used) = Message::decode(&wire).expect("it was written").expect("it is whole");
        assert_eq!(used, wire.len());
        receiver.take(message).expect("an honest message");
        while let Some(received) = receiver.step().expect("an honest message") {
            let answer = match received {
                Received::Bytes { bytes, answer } => {
                    copy.extend_from_slice(&bytes);
                    answer
                }
                Received::Ask(answer) | Received::End(answer) => answer,
                other => panic!("{other:?}"),
            };
            next = sender.answer(answer).expect("an honest answer").or(next);
            if sender.is_done() {
                return;
            }
        }
    }
}

fuzz_target!(|data: (bool, u8, Vec<(u16, u8, &[u8])>)| {
    let (other, owner, parts) = data;
    let [here, one, two] = caches();
    let encode =
        EncodeOptions { chunk_bytes: 1 << 10, segment_bytes: 64 << 10, ..EncodeOptions::default() };
    let options = LiveOptions { encode, ..LiveOptions::default() };
    let owner = Owner::of(&[owner % 4]);
    let mut sender =
        LiveSender::new(Arc::clone(here), owner.clone(), options).expect("the options are right");
    let mut receiver = LiveReceiver::new(Arc::clone(if other { two } else { one }), owner);
    let (mut stream, mut copy) = (Vec::new(), Vec::new());
    for (repeat, step, part) in parts {
        // Long segments of short inputs: the part repeated, a little different each time.
        let mut segment = Vec::new();
        for round in 0..repeat % 512 {
            segment.extend_from_slice(part);
            segment.push((round as u8).wrapping_mul(step));
        }
        segment.truncate(sender.space_bytes());
        if segment.is_empty() {
            continue;
        }
        stream.extend_from_slice(&segment);
        let message = sender.send(&segment).expect("it fits");
        pass(&mut sender, &mut receiver, message, &mut copy);
    }
    let end = sender.end().expect("the first one");
    pass(&mut sender, &mut receiver, end, &mut copy);
    assert!(sender.is_done() && copy == stream, "the copy differs");
});
