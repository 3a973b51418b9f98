//! Arbitrary bytes are messages of a live stream or are refused, and no message makes an end of a stream
//! panic or pass on more than a segment. A message that was read is written back the same.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use nandex_device::MemoryDevice;
use nandex_wan::live::{
    LIVE_SEGMENT_BYTES_MAX, LiveOptions, LiveReceiver, LiveSender, Message, Received,
};
use nandex_wan::{CACHE_BYTES_MIN, Cache, CacheConfig, Owner};

fn cache() -> Arc<Cache> {
    static CACHE: OnceLock<Arc<Cache>> = OnceLock::new();
    let make = || {
        let config = CacheConfig { content_bytes: CACHE_BYTES_MIN, ..CacheConfig::default() };
        Arc::new(Cache::create(Arc::new(MemoryDevice::new()), config).expect("it fits"))
    };
    Arc::clone(CACHE.get_or_init(make))
}

/// Gives a message to both ends until one refuses it.
fn take(sender: &mut LiveSender, receiver: &mut LiveReceiver, message: Message) -> Option<()> {
    if message.kind.is_answer() {
        return sender.answer(message).ok().map(drop);
    }
    receiver.take(message).ok()?;
    while let Some(received) = receiver.step().ok()? {
        if let Received::Bytes { bytes, .. } = received {
            assert!(bytes.len() <= LIVE_SEGMENT_BYTES_MAX);
        }
    }
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    let owner = Owner::of(b"a key");
    let mut sender = LiveSender::new(cache(), owner.clone(), LiveOptions::default())
        .expect("the options are right");
    let mut receiver = LiveReceiver::new(cache(), owner);
    let _ = sender.send(&[7; 5000]);
    let mut rest = bytes;
    while let Ok(Some((message, used))) = Message::decode(rest) {
        let mut again = Vec::new();
        message.encode(&mut again);
        assert!(
            Message::decode(&again).expect("it was written")
                == Some((message.clone(), again.len()))
        );
        rest = &rest[used..];
        if take(&mut sender, &mut receiver, message).is_none() {
            break;
        }
    }
    // Files of references have the same frames, with a checksum.
    let _ = nandex_wan::decode(&cache(), &mut &bytes[..], &mut std::io::sink());
});
