//! Figure 6: the loss of lookups that are started in the order of their requests.

use nandex::raw::store::schedule::Channels;

use super::lab::{Mix, Setup};
use super::orders::{Order, pages_read};
use super::throughput::Part;
use super::workers::{Pace, THREADS, WorkerModel};
use crate::{
    Chart, Drive, Experiment, Filled, Outcome, Result, Row, Scale, Scaling, Series, Table,
};

/// See the [module](self).
pub struct Figure6;

/// Lookups that are measured for each order.
const LOOKUPS: usize = 8_000;
/// The number of lookups that a schedule may choose from, if it has as many as the paper's batches may have:
/// all channels of the worst order.
const WIDE: usize = 32 * THREADS;
/// Orders, and the paper's share without the schedule.
const ORDERS: [(&str, Order, Option<f64>); 9] = [
    ("random", Order::Random, Some(0.85)),
    ("skewed, S = 5", Order::Skewed(5), Some(0.83)),
    ("skewed, S = 10", Order::Skewed(10), Some(0.70)),
    ("ordered, K = 1", Order::Ordered(1), None),
    ("ordered, K = 2", Order::Ordered(2), None),
    ("ordered, K = 4", Order::Ordered(4), None),
    ("ordered, K = 8", Order::Ordered(8), None),
    ("ordered, K = 16", Order::Ordered(16), Some(0.42)),
    ("ordered, K = 32", Order::Ordered(32), None),
];

/// The reason why some orders are faster than the paper's best.
const PIPELINED: &str = "In this model two reads of one plane that follow each other overlap: \
     the plane reads on while its register crosses the bus, 75 us each and not 116. The paper's \
     schedule spreads them. Runs of a channel, in the last tables, are faster than both.";
/// The reason for the first of the rows with runs.
const RUNS: &str = "A bus of this model serves one read at a time, so reads of its four planes gain nothing from being \
     spread, and reads of one plane overlap. Each bus starts up to eight of a channel.";

/// One order's rates.
struct Rates {
    with: Choice,
    in_runs: Choice,
    without: f64,
}

/// Rates of a schedule.
struct Choice {
    /// The rate with as many lookups as the paper's batches may have.
    of_many: f64,
    /// The rate with at most as many lookups as a stream of the structure has.
    of_few: f64,
}

impl Experiment for Figure6 {
    fn name(&self) -> &'static str {
        "figure-6"
    }

    fn title(&self) -> &'static str {
        "Lookups without knowledge of channels"
    }

    fn reference(&self) -> &'static str {
        "section 7.3, Figure 6"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let pages = pages_read(&Part::of(Setup::paper(scale), [Mix::Lookups])?[0].tape);
        let mut tables = Vec::new();
        let mut tables_of_runs = Vec::new();
        let mut charts = Vec::new();
        for (pace, how) in [(Pace::Batches, "in batches of 32"), (Pace::Stream, "as a stream")] {
            let (mut rows, mut rows_of_runs) = (Vec::new(), Vec::new());
            let mut with_runs = Vec::new();
            let (mut by_run, mut printed) = (Vec::new(), Vec::new());
            for (name, order, paper) in ORDERS {
                let rates = rates(order, pace, &pages, scale)?;
                if let Order::Ordered(run) = order {
                    by_run.push((run as f64, rates.without / rates.with.of_many));
                    with_runs.push((run as f64, rates.without / rates.in_runs.of_many));
                    printed.extend(paper.map(|paper| (run as f64, paper)));
                }
                rows.extend(compare(name, paper, pace, &rates));
                rows_of_runs.extend(compare_runs(name, &rates));
            }
            tables.push(Table { title: format!("Without over with, {how}"), rows });
            let title = format!("In runs of a channel, as nandex starts them, {how}");
            tables_of_runs.push(Table { title, rows: rows_of_runs });
            let series = vec![
                Series::ours("ours, over the paper's schedule", by_run),
                Series::ours("ours, over runs", with_runs),
                Series::paper("paper", printed),
            ];
            charts.push(chart(how, series));
        }
        tables.append(&mut tables_of_runs);
        Ok(Outcome { setup: setup(), tables, charts })
    }
}

fn setup() -> Vec<String> {
    vec![
        "Each lookup reads one slice, whose channel is told by its place in the slicetable; keys \
         come in the order of those channels. 32 reads are in flight, and the processor takes no \
         time."
            .into(),
        format!(
            "In batches all 32 end before the next 32 begin; in a stream each that ends makes \
             place for another. With knowledge of channels the next 32 are chosen from {WIDE} \
             that wait. A stream of the structure holds eight times its depth, 256, and its \
             rates are given, too."
        ),
        "The paper does not say how its threads waited; its shares are between the two.".into(),
        "With is the paper's schedule, which spreads reads over the channels. The schedule of \
         nandex does the same, unless the geometry says that a bus serves one read at a time, as \
         on this model: then it spreads reads over the buses, and each starts up to eight of one \
         channel before the next channel's. No real drive says so."
            .into(),
    ]
}

fn rates(order: Order, pace: Pace, pages: &[u64], scale: Scale) -> Result<Rates> {
    let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
    let tape = order.tape(pages, channels, LOOKUPS, scale.seed());
    let rate = |model: WorkerModel| {
        let model = WorkerModel { pace, lookup_cpu_ns: 0, ..model };
        let mut drives = [Drive::CRUCIAL.model(scale, Filled::Once, tape.page_count())?];
        Ok::<_, crate::Error>(model.work(&tape, &mut drives).operations_per_s)
    };
    let choice = |aware: WorkerModel| {
        let of_many = rate(WorkerModel { window: WIDE + THREADS, ..aware })?;
        Ok::<_, crate::Error>(Choice { of_many, of_few: rate(aware)? })
    };
    Ok(Rates {
        with: choice(WorkerModel::channel_aware(channels, 1))?,
        in_runs: choice(WorkerModel::in_runs(channels, 1))?,
        without: rate(WorkerModel::in_order_of_arrival())?,
    })
}

fn compare(name: &str, paper: Option<f64>, pace: Pace, rates: &Rates) -> [Row; 4] {
    let mut share = Row::measured(name, "", rates.without / rates.with.of_many);
    if let Some(paper) = paper {
        share = share.paper(paper);
    }
    if let Some(why) = why(name, pace) {
        share = share.why(why);
    }
    [
        share,
        lookups(name, "with", rates.with.of_many),
        lookups(name, "with 256 to choose from", rates.with.of_few),
        lookups(name, "without", rates.without),
    ]
}

fn compare_runs(name: &str, rates: &Rates) -> [Row; 4] {
    let share = |what: &str, rate| {
        Row::measured(format!("{name}: {what} over runs"), "", rate / rates.in_runs.of_many)
    };
    let without = share("without", rates.without);
    [
        if name == ORDERS[0].0 { without.why(RUNS) } else { without },
        share("the paper's schedule", rates.with.of_many),
        lookups(name, "in runs", rates.in_runs.of_many),
        lookups(name, "in runs, with 256 to choose from", rates.in_runs.of_few),
    ]
}

fn lookups(name: &str, what: &str, rate: f64) -> Row {
    Row::measured(format!("{name}: {what}"), "lookups/s", rate)
}

fn why(name: &str, pace: Pace) -> Option<&'static str> {
    match (name, pace) {
        ("ordered, K = 2" | "ordered, K = 4" | "ordered, K = 8", _) => Some(PIPELINED),
        ("ordered, K = 1", _) => None,
        (_, Pace::Stream) => Some(
            "The 32 in flight are no batch: a channel that is late holds up its own reads only, \
             and the drive works on the others.",
        ),
        ("random" | "skewed, S = 5" | "skewed, S = 10", Pace::Batches) => Some(
            "All 32 wait for the channel, or the bus, that got most of them; the paper's threads \
             waited for each other less.",
        ),
        _ => None,
    }
}

fn chart(how: &str, series: Vec<Series>) -> Chart {
    Chart {
        title: format!("Ordered lookups without knowledge of channels, over those with, {how}"),
        x: "K: lookups of a channel, one after another",
        y: "share",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series,
    }
}
