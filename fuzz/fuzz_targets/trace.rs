//! Any bytes are a trace or an error, in each format; a record is within the device it is folded onto.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex_sim::trace::{BlkparseEvent, Options, TraceFormat, TraceReader};

const PAGES: u64 = 1000;

fuzz_target!(|data: (bool, &[u8])| {
    let (is_issue, bytes) = data;
    let event = if is_issue { BlkparseEvent::Issue } else { BlkparseEvent::Queue };
    let options = Options { event, device: None };
    for format in TraceFormat::ALL {
        let mut last_ns = 0;
        for record in TraceReader::new(format, bytes, options.clone()) {
            let Ok(record) = record else { break };
            let Ok(arrival) = record.arrival(7) else { continue };
            let arrival = arrival.folded(PAGES);
            assert!(arrival.at_ns >= last_ns, "time goes on");
            assert!(arrival.request.page + u64::from(arrival.request.pages) <= PAGES);
            last_ns = arrival.at_ns;
        }
    }
    // Nothing panics, whether a format is detected or not.
    let _ = TraceReader::detecting(bytes, options);
});
