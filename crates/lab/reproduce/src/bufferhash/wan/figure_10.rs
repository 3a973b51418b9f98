//! Figure 10: the improvement of each object's throughput, on a link that is full without the optimizer.

use super::figure_9::{TRANSCEND, berkeley_wan_ns};
use super::index::{BufferHashRun, ObjectTimes, berkeley, direct};
use super::link::{Link, Sent};
use super::objects::{Redundancy, Spread, Trace};
use crate::{Chart, Drive, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits};

/// See the [module](self).
pub struct Figure10;

/// Chunks of the trace.
const CHUNKS: u64 = 1 << 26;
/// The speed of the link, in Mb/s.
const SPEED: Link = Link(10);
/// The maximum length of the objects that Berkeley DB slows, as the paper says of many.
const SMALL_BYTES: u64 = 500_000;

/// All objects, through an optimizer with this index.
struct Through {
    name: &'static str,
    sent: Vec<Sent>,
}

impl Experiment for Figure10 {
    fn name(&self) -> &'static str {
        "figure-10"
    }

    fn title(&self) -> &'static str {
        "Objects through a WAN optimizer under load"
    }

    fn reference(&self) -> &'static str {
        "section 8.1, scenario 2, Figure 10"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let chunks = scale.of(CHUNKS);
        let trace = Trace::new(Redundancy(50), Spread::ByObject, chunks, scale.seed());
        let ours = BufferHashRun::new(&trace, scale)?.on(Drive::TRANSCEND)?;
        let all = [
            ("BufferHash", ours),
            ("Berkeley DB", berkeley(&trace, TRANSCEND, scale)?),
            ("Berkeley DB of 1.25 ms", ObjectTimes::constant(&trace, berkeley_wan_ns())),
            ("without buffers", direct(&trace, TRANSCEND, scale)?),
        ]
        .map(|(name, times)| Through { name, sent: SPEED.accelerated(&trace, &times) });
        Ok(Outcome {
            setup: setup(&trace),
            tables: vec![improvements(&trace, &all), slowed(&all), latencies(&all)],
            charts: vec![chart(&all)],
        })
    }
}

fn setup(trace: &Trace) -> Vec<String> {
    vec![
        format!(
            "{} objects arrive one after another as fast as a link of 10 Mb/s takes them, so that it \
             is full and nothing waits without the optimizer. With it an object waits for the \
             lookups and inserts of those before, and for the link. Improvement is an object's \
             throughput over that without the optimizer. All indexes are on the Transcend SSD.",
            trace.objects.len()
        ),
        "The paper does not print how long its objects are, how its redundancy is spread over \
         them, or how they bunch. Here objects have 8 to 1,280 chunks, by a power law; the \
         share of chunks that were sent before is anything from none to all in an object, each \
         as likely; and objects come without a pause and never two at once. The mean \
         improvement follows from this choice as much as from the index: an object all of whose \
         chunks were sent before goes as fast as its lookups."
            .into(),
        "Berkeley DB's hash table is that of Figure 9. The index of 1.25 ms an operation is the \
         slowest with which Figure 9's close to 2 x at 10 Mb/s can come about."
            .into(),
    ]
}

impl Through {
    fn mean_of(&self, number: impl Fn(&Sent) -> f64) -> f64 {
        self.sent.iter().map(number).sum::<f64>() / self.sent.len().max(1) as f64
    }

    fn mean(&self) -> f64 {
        self.mean_of(Sent::improvement)
    }

    /// Returns the share of the `wanted` objects whose throughput is below a part of the plain one.
    fn share_below(&self, part: f64, wanted: impl Fn(&Sent) -> bool) -> f64 {
        let all = self.sent.iter().filter(|it| wanted(it));
        let (slow, all) = all
            .fold((0, 0), |(slow, all), it| (slow + u64::from(it.improvement() < part), all + 1));
        slow as f64 / all.max(1) as f64
    }
}

fn improvements(trace: &Trace, [ours, berkeley, fast, direct]: &[Through; 4]) -> Table {
    let chosen = "The paper's objects and where their repeats are decide it too.";
    let rows = vec![
        Row::input("part of the bytes that repeat", "", trace.repeated()).paper(0.5),
        Row::measured("BufferHash", "", ours.mean()).paper(3.1).why(chosen),
        Row::measured("Berkeley DB", "", berkeley.mean())
            .paper(1.9)
            .why("It cannot keep up with the link, so that each object waits longer than the one before."),
        Row::fitted("Berkeley DB of 1.25 ms", "", fast.mean(), fits::BERKELEY_WAN).paper(1.9).why(chosen),
        Row::fitted("BufferHash over Berkeley DB of 1.25 ms", "", ours.mean() / fast.mean(), fits::BERKELEY_WAN)
            .paper(1.65)
            .why("The paper: 65 % better. It also rests on objects that repeat to different degrees, where Figure 9 has all of them alike."),
        Row::measured("without buffers", "", direct.mean())
            .why("It cannot keep up with the link, so that each object waits longer than the one before."),
    ];
    Table { title: "Improvement of an object's throughput, mean".into(), rows }
}

fn slowed(all: &[Through; 4]) -> Table {
    let mut rows = Vec::new();
    for it in all {
        let row = |what: &str, share| Row::measured(format!("{}: {what}", it.name), "", share);
        rows.extend([
            row("slowed", it.share_below(1.0, |_| true)),
            row("slowed to half or less", it.share_below(0.5, |_| true)),
            row(
                "of those up to 500 KB, slowed to half or less",
                it.share_below(0.5, |sent| sent.bytes <= SMALL_BYTES),
            )
            .why("The paper: many with Berkeley DB, far fewer with BufferHash; how many is in its picture only."),
            row(
                "of longer ones, slowed to half or less",
                it.share_below(0.5, |sent| sent.bytes > SMALL_BYTES),
            ),
        ]);
    }
    Table { title: "Share of objects that the optimizer slows".into(), rows }
}

fn latencies(all: &[Through; 4]) -> Table {
    let ms = |ns: u64| ns as f64 / 1e6;
    let plain = all[0].mean_of(|sent| ms(sent.plain_ns));
    let mut rows = vec![Row::measured("without the optimizer", "ms", plain)];
    for it in all {
        let mut times: Vec<u64> = it.sent.iter().map(|sent| sent.time_ns).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or(0);
        let row = |what: &str, ms| Row::measured(format!("{}: {what}", it.name), "ms", ms);
        rows.extend([
            row("mean", it.mean_of(|sent| ms(sent.time_ns))),
            row("median", ms(median)),
            row("the longest", ms(times.last().copied().unwrap_or(0))),
        ]);
    }
    Table { title: "Time of an object, from its arrival to its last byte".into(), rows }
}

fn chart(all: &[Through; 4]) -> Chart {
    Chart {
        title: "Figure 10: mean improvement of objects by their length".into(),
        x: "bytes of an object, up to",
        y: "improvement",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series: all.iter().map(|it| Series::ours(it.name, by_length(&it.sent))).collect(),
    }
}

/// Returns the mean improvement of objects up to each power of two of bytes.
fn by_length(sent: &[Sent]) -> Vec<(f64, f64)> {
    let mut sums = std::collections::BTreeMap::new();
    for it in sent {
        let sum = sums.entry(it.bytes.next_power_of_two()).or_insert((0.0, 0.0));
        *sum = (sum.0 + it.improvement(), sum.1 + 1.0);
    }
    sums.into_iter().map(|(bytes, (sum, count))| (bytes as f64, sum / count)).collect()
}
