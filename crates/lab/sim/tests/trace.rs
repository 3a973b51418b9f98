//! The trace readers: lines as the tools print them, round trips, and bytes that are no trace at all.

use nandex_sim::RequestKind;
use nandex_sim::trace::{BlkparseEvent, Options, Record, TraceError, TraceFormat, TraceReader};
use proptest::prelude::*;

const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   N [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,0    3        4     0.000007083   697  M   W 223498 + 8 [kjournald]
  8,16   3        5     0.000010000   697  Q   R 64 + 16 [a process]
  8,0    3        6     0.000018094   697  I   W 223490 + 16 [kjournald]
  8,0    3        7     0.000021000   697  Q FWS [jbd2/sda1-8]
  8,0    3        0     0.000022000     0  m   N cfq697 insert_request
  8,0    3        8     0.000023747   697  D   W 223490 + 16 [kjournald]
  8,0    3        9     0.000024000   697  Q  DS 4096 + 2048 [fstrim]
  8,0    3       10     0.000025000   697  Q   N 36 (12 00 00 00 24 00 ..) [multipathd]
  8,0    0       11     0.009507758     0  C   W 223490 + 16 [0]
CPU0 (sda):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,        8KiB
Throughput (R/W): 0KiB/s / 842KiB/s
";

const MSR: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372016382155,usr,1,Write,2657792,512,19613
";

fn read(format: TraceFormat, text: &[u8], options: Options) -> Result<Vec<Record>, TraceError> {
    TraceReader::new(format, text, options).collect()
}

fn record(at_ns: u64, kind: RequestKind, offset_bytes: u64, bytes: u64) -> Record {
    Record { at_ns, kind, offset_bytes, bytes }
}

#[test]
fn disksim_lines_are_milliseconds_sectors_and_flags() {
    let text = b"5265.313 0 6357144 8 0\r\n\n5265.7034567 1 24 64 1\n  5265.71 0 0 1 20001";
    let records = read(TraceFormat::DiskSim, text, Options::default()).unwrap();
    let expected = [
        record(0, RequestKind::Write, 6_357_144 * 512, 4096),
        record(390_457, RequestKind::Read, 24 * 512, 64 * 512),
        record(397_000, RequestKind::Read, 0, 512),
    ];
    assert_eq!(records, expected);
}

#[test]
fn blkparse_gives_what_was_queued_and_stops_before_the_summary() {
    let records = read(TraceFormat::Blkparse, BLKPARSE.as_bytes(), Options::default()).unwrap();
    let expected = [
        record(0, RequestKind::Write, 223_490 * 512, 4096),
        record(7_803, RequestKind::Read, 64 * 512, 8192),
        record(18_803, RequestKind::Sync, 0, 0),
        record(21_803, RequestKind::Discard, 4096 * 512, 1 << 20),
    ];
    assert_eq!(records, expected);
}

#[test]
fn blkparse_gives_what_was_issued_where_that_is_asked_for() {
    let options = Options { event: BlkparseEvent::Issue, ..Options::default() };
    let records = read(TraceFormat::Blkparse, BLKPARSE.as_bytes(), options).unwrap();
    assert_eq!(records, [record(0, RequestKind::Write, 223_490 * 512, 8192)]);
}

#[test]
fn one_device_of_several_may_be_chosen() {
    let of = |device: &str| Options { device: Some(device.into()), ..Options::default() };
    let records = read(TraceFormat::Blkparse, BLKPARSE.as_bytes(), of("8,16")).unwrap();
    assert_eq!(records, [record(0, RequestKind::Read, 64 * 512, 8192)]);
    let records = read(TraceFormat::Msr, MSR.as_bytes(), of("1")).unwrap();
    assert_eq!(records, [record(0, RequestKind::Write, 2_657_792, 512)]);
    let refusal = read(TraceFormat::Msr, MSR.as_bytes(), of("7")).unwrap_err().to_string();
    assert!(refusal.contains("none of the 2 lines") && refusal.contains("device `0`"), "{refusal}");
}

#[test]
fn msr_rows_are_ticks_and_bytes_with_a_header_or_without() {
    let expected = [
        record(0, RequestKind::Read, 7_014_609_920, 24_576),
        record(1_332_052_600, RequestKind::Write, 2_657_792, 512),
    ];
    let headed = format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{MSR}");
    for text in [MSR, &headed] {
        assert_eq!(read(TraceFormat::Msr, text.as_bytes(), Options::default()).unwrap(), expected);
    }
}

#[test]
fn the_first_line_that_does_not_parse_is_named_and_ends_the_reading() {
    let cases = [
        (TraceFormat::DiskSim, "1.0 0 8 8 0\n2.0 0 8 8\n3.0 0 8 8 0\n", 2, "expected the flags"),
        (TraceFormat::DiskSim, "1.0 0 8 0 0\n", 1, "a size above 0"),
        (TraceFormat::DiskSim, "-1.0 0 8 8 0\n", 1, "the time in milliseconds"),
        (TraceFormat::DiskSim, "1.0 0 8 8 0 5\n", 1, "5 fields"),
        (
            TraceFormat::DiskSim,
            "1.0 0 99999999999999999999 8 0\n",
            1,
            "found `99999999999999999999`",
        ),
        (TraceFormat::DiskSim, "1.0 0 18446744073709551615 8 0\n", 1, "below 2^64 bytes"),
        (TraceFormat::Blkparse, "8,0 3 1 0.0 697 Q W 223490 - 8 [a]\n", 1, "`+` between"),
        (TraceFormat::Blkparse, "8,0 3 1 0.0 697 Q ? 223490 + 8 [a]\n", 1, "letters of RWBS"),
        (TraceFormat::Blkparse, "sda 3 1 0.0 697 Q W 223490 + 8 [a]\n", 1, "major,minor"),
        (TraceFormat::Msr, "1,usr,0,Flush,0,512,1\n", 1, "`Read` or `Write`, found `Flush`"),
        (TraceFormat::Msr, "1,usr,0,Read,0,512\n", 1, "found the end of the line"),
        (TraceFormat::Msr, "1,usr,0,Read,0,512,1,9\n", 1, "7 columns"),
    ];
    for (format, text, line, says) in cases {
        let mut reader = TraceReader::new(format, text.as_bytes(), Options::default());
        let refusal = reader.find_map(Result::err).unwrap().to_string();
        let place = format!("line {line} of the {format} trace");
        assert!(refusal.contains(&place) && refusal.contains(says), "{text}: {refusal}");
        assert!(reader.next().is_none(), "{text}");
    }
}

#[test]
fn a_trace_without_a_record_that_was_asked_for_is_an_error() {
    let completed = "8,0 0 11 0.009507758 0 C W 223490 + 16 [0]\n";
    let refusal =
        read(TraceFormat::Blkparse, completed.as_bytes(), Options::default()).unwrap_err();
    let refusal = refusal.to_string();
    assert!(refusal.contains("a `Q` event") && refusal.contains("`C`"), "{refusal}");
    for format in TraceFormat::ALL {
        let refusal = read(format, b"\n \n", Options::default()).unwrap_err().to_string();
        assert!(refusal.contains("none of the 2 lines"), "{refusal}");
    }
}

#[test]
fn a_line_without_an_end_does_not_fill_the_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'7'));
    let mut reader = TraceReader::new(TraceFormat::DiskSim, endless, Options::default());
    let refusal = reader.next().unwrap().unwrap_err();
    assert!(matches!(refusal, TraceError::LongLine { line: 1, .. }), "{refusal}");
}

#[test]
fn records_that_go_back_in_time_are_counted_and_held_at_the_one_before() {
    let text = b"5 0 0 8 0\n7 0 8 8 0\n6 0 16 8 0\n4 0 24 8 0\n8 0 32 8 0\n";
    let mut reader = TraceReader::new(TraceFormat::DiskSim, &text[..], Options::default());
    let times: Vec<u64> = reader.by_ref().map(|record| record.unwrap().at_ns).collect();
    assert_eq!(times, [0, 2_000_000, 2_000_000, 2_000_000, 3_000_000]);
    assert_eq!((reader.records(), reader.reordered()), (5, 2));
}

#[test]
fn the_format_shows_in_the_content() {
    let disksim = "\n5265.313 0 6357144 8 0\n5265.703 0 6307768 8 0\n5297.450 0 337";
    for (text, format) in [
        (disksim, TraceFormat::DiskSim),
        (BLKPARSE, TraceFormat::Blkparse),
        (&BLKPARSE[..100], TraceFormat::Blkparse),
        (MSR, TraceFormat::Msr),
        ("1.0 0 8 8 0", TraceFormat::DiskSim),
    ] {
        assert_eq!(TraceFormat::detect(text.as_bytes()).unwrap(), format, "{text}");
        let reader = TraceReader::detecting(text.as_bytes(), Options::default()).unwrap();
        assert_eq!(reader.format(), format, "{text}");
    }
    for text in ["", "hello world\n", "1.0 0 8 8 0\n1,usr,0,Read,0,512,1\n", "\x1b[2J\n"] {
        let refusal = TraceFormat::detect(text.as_bytes()).unwrap_err().to_string();
        assert!(refusal.contains("convert the trace") && !refusal.contains('\x1b'), "{refusal}");
    }
}

#[test]
fn a_record_covers_every_page_it_touches() {
    let pages = |offset_bytes, bytes| {
        let arrival = record(3, RequestKind::Read, offset_bytes, bytes).arrival(5).unwrap();
        assert_eq!((arrival.at_ns, arrival.request.token), (3, 5));
        (arrival.request.page, arrival.request.pages)
    };
    assert_eq!(pages(0, 4096), (0, 1));
    assert_eq!(pages(4095, 2), (0, 2));
    assert_eq!(pages(8192, 1), (2, 1));
    assert_eq!(pages(0, 0), (0, 0));
    let all = record(0, RequestKind::Write, 0, u64::MAX).arrival(0);
    assert!(matches!(all, Err(TraceError::Size { .. })));
}

/// Formats a record as a line, as the tools of the format would.
fn line(format: TraceFormat, record: &Record) -> String {
    let Record { at_ns, kind, offset_bytes, bytes } = *record;
    let (sector, sectors) = (offset_bytes / 512, bytes / 512);
    let reads = kind == RequestKind::Read;
    match format {
        TraceFormat::DiskSim => {
            let (ms, ns) = (at_ns / 1_000_000, at_ns % 1_000_000);
            format!("{ms}.{ns:06} 0 {sector} {sectors} {}\n", u8::from(reads))
        }
        TraceFormat::Blkparse => {
            let (s, ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
            let letter = if reads { "R" } else { "WS" };
            format!("  8,0    1  7 {s:5}.{ns:09}  12  Q {letter:>3} {sector} + {sectors} [a b]\n")
        }
        TraceFormat::Msr => {
            let kind = if reads { "Read" } else { "Write" };
            format!("{},host,0,{kind},{offset_bytes},{bytes},100\n", at_ns / 100)
        }
        other => unreachable!("{other} has no writer here"),
    }
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let kind = prop_oneof![Just(RequestKind::Read), Just(RequestKind::Write)];
    let one = (0u64..10_000_000, kind, 0u64..1 << 40, 1u64..1 << 16);
    proptest::collection::vec(one, 1..20).prop_map(|parts| {
        let mut at_ns = 0;
        let record = |(index, (gap, kind, sector, sectors)): (usize, (u64, _, u64, u64))| {
            at_ns += if index == 0 { 0 } else { gap * 100 };
            record(at_ns, kind, sector * 512, sectors * 512)
        };
        parts.into_iter().enumerate().map(record).collect()
    })
}

proptest! {
    #[test]
    fn what_a_tool_writes_is_read_back(records in records()) {
        for format in TraceFormat::ALL {
            let text: String = records.iter().map(|record| line(format, record)).collect();
            let options = Options::default();
            let reader = TraceReader::detecting(text.as_bytes(), options).unwrap();
            prop_assert_eq!(reader.format(), format);
            let found: Result<Vec<Record>, TraceError> = reader.collect();
            prop_assert_eq!(&found.unwrap(), &records);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, event: bool) {
        let event = if event { BlkparseEvent::Queue } else { BlkparseEvent::Issue };
        for format in TraceFormat::ALL {
            let options = Options { event, device: None };
            let _: Vec<_> = TraceReader::new(format, &bytes[..], options).collect();
        }
        let _ = TraceFormat::detect(&bytes);
    }

    #[test]
    fn any_damage_to_a_trace_is_read_or_refused(
        records in records(),
        at: prop::sample::Index,
        with: Vec<u8>,
    ) {
        for format in TraceFormat::ALL {
            let mut text: Vec<u8> =
                records.iter().flat_map(|record| line(format, record).into_bytes()).collect();
            let start = at.index(text.len());
            let end = (start + with.len()).min(text.len());
            text.splice(start..end, with.iter().copied());
            let mut last_ns = 0;
            for record in TraceReader::new(format, &text[..], Options::default()) {
                let Ok(record) = record else { break };
                prop_assert!(record.at_ns >= last_ns, "time went back");
                last_ns = record.at_ns;
                let _ = record.arrival(0);
            }
        }
    }
}
