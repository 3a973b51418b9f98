//! Figure 4: flash reads of an access, for indexes below and above the DRAM.

use nandex_kvssd::{Cluster, ClusterRequest, TraceOperation};
use nandex_sim::RequestKind;

use super::lab::{Access, IndexSize, KvIndex, PAGE_BYTES, Requests, key, pages};
use super::multilevel::MultilevelIndex;
use super::records::RhikIndex;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits};

/// See the [module](self).
pub struct Figure4;

/// The DRAM of the paper, in bytes.
const DRAM_BYTES: u64 = 10_000_000;
/// The number of keys that are in no cluster, looked up at the end.
const ABSENT: u64 = 2_000;

/// The accesses of one index, and their reads.
#[derive(Clone, Debug, Default)]
struct Counted {
    accesses: u64,
    /// The accesses by their reads.
    histogram: Vec<u64>,
    /// The pages that updates read, and wrote.
    rewritten: (u64, u64),
}

/// Both indexes after a cluster's requests.
struct Ran {
    cluster: Cluster,
    rhik: Counted,
    multilevel: Counted,
    /// The pages of the index, RHIK's and the other's.
    pages: (u64, u64),
    /// The maximum reads of RHIK's accesses without a cache, including absent keys.
    reads_max: usize,
    /// The reads of absent keys, on average.
    absent: (f64, f64),
}

impl Experiment for Figure4 {
    fn name(&self) -> &'static str {
        "figure-4"
    }

    fn title(&self) -> &'static str {
        "Flash reads of an index access"
    }

    fn reference(&self) -> &'static str {
        "section 3, Figure 4"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let times = u64::from(scale.times() / Scale::LEAST);
        let run = |cluster: Cluster| Ran::new(cluster, times, scale.seed());
        let all = Cluster::ALL.into_iter().map(run).collect::<Result<Vec<_>>>()?;
        Ok(Outcome {
            setup: setup(times),
            tables: vec![rhik(&all), multilevel(&all), absent(&all), updates(&all)],
            charts: vec![chart(&all)],
        })
    }
}

fn setup(times: u64) -> Vec<String> {
    vec![
        format!(
            "Eight clusters of generated requests. The IBM Cloud Object Store traces cannot be \
             passed on; published are their totals, 4.68 requests for each object, and that \
             022, 026, 052 and 072 have an index below 10 MB and the four others, here A to D, \
             one above. Objects of each cluster and the mix of requests are chosen. DRAM and \
             objects are divided by {times}."
        ),
        "Every request is an access: a GET or HEAD looks its object up, a PUT looks it up and \
         adds it, a DELETE looks it up and removes it. The second half of them counts. Both \
         indexes are the tables of nandex, and their reads are counted on their devices. Both \
         have the DRAM. RHIK has it for its directory, write buffers and record pages: a quarter \
         for buffers where its tables fit, else all but an eighth. The other has an eighth of it \
         for write buffers, a little for the map of its pages, and the rest for pages. A clock \
         replaces pages in both."
            .into(),
        "The paper prints of the other index that it spills over levels and reads 3 to 7 pages. \
         That a level is twice as long as the one before, the first one 64 pages, is chosen \
         here so that this comes out: its rows are fitted."
            .into(),
    ]
}

impl Counted {
    fn add(&mut self, requests: &Requests) {
        let reads = requests.reads.len();
        self.histogram.resize(self.histogram.len().max(reads + 1), 0);
        self.histogram[reads] += 1;
        self.accesses += 1;
        self.rewritten.0 += pages(&requests.update, RequestKind::Read);
        self.rewritten.1 += pages(&requests.update, RequestKind::Write);
    }

    fn mean(&self) -> f64 {
        let reads: u64 = (0..).zip(&self.histogram).map(|(reads, count)| reads * count).sum();
        self.each(reads)
    }

    /// Returns the maximum reads of all but one in a hundred.
    fn p99(&self) -> f64 {
        let mut above = self.accesses;
        let mut least = (0..).zip(&self.histogram).skip_while(|(_, count)| {
            above -= **count;
            above * 100 > self.accesses
        });
        least.next().map_or(0, |(reads, _): (u32, _)| reads).into()
    }

    fn each(&self, count: u64) -> f64 {
        count as f64 / self.accesses.max(1) as f64
    }
}

impl Ran {
    fn new(cluster: Cluster, times: u64, seed: u64) -> Result<Self> {
        let dram_bytes = DRAM_BYTES / times;
        let size = IndexSize { dram_bytes, keys: cluster.objects / times, times, seed };
        let (mut rhik, mut multilevel) = (RhikIndex::new(size)?, MultilevelIndex::new(size)?);
        let [mut ours, mut other] = [Counted::default(), Counted::default()];
        let workload = cluster.workload(times, seed);
        let half = workload.requests() / 2;
        for (number, request) in (0..).zip(workload) {
            let access = access_of(&request);
            let (first, second) =
                (rhik.access(request.object, access)?, multilevel.access(request.object, access)?);
            if number >= half {
                ours.add(&first);
                other.add(&second);
            }
        }
        let pages = (rhik.stats().tables, multilevel.stats().pages);
        let absent = (absent_reads(&mut rhik)?, absent_reads(&mut multilevel)?);
        let reads_max = rhik.reads_max();
        Ok(Self { cluster, rhik: ours, multilevel: other, pages, reads_max, absent })
    }

    fn named(&self, what: &str) -> String {
        format!("{}: {what}", self.cluster.name)
    }
}

fn absent_reads(index: &mut dyn KvIndex) -> Result<f64> {
    let mut reads = 0;
    for number in 0..ABSENT {
        reads += index.access(key(u64::MAX - number), Access::Lookup)?.reads.len();
    }
    Ok(reads as f64 / ABSENT as f64)
}

fn access_of(request: &ClusterRequest) -> Access {
    match request.operation {
        TraceOperation::Put => Access::Insert,
        TraceOperation::Delete => Access::Remove,
        _ => Access::Lookup,
    }
}

fn rhik(all: &[Ran]) -> Table {
    let mut rows = Vec::new();
    for ran in all {
        let mean = Row::measured(ran.named("mean"), "reads", ran.rhik.mean());
        rows.push(if ran.cluster.fits { mean } else { mean.paper_at_most(1.0) });
        rows.push(
            Row::measured(
                ran.named("the most, with no page in DRAM"),
                "reads",
                ran.reads_max as f64,
            )
            .paper_at_most(1.0),
        );
    }
    Table { title: "RHIK: flash reads of an access".into(), rows }
}

fn multilevel(all: &[Ran]) -> Table {
    let mut rows = Vec::new();
    for ran in all {
        let fitted =
            |what: &str, ours| Row::fitted(ran.named(what), "reads", ours, fits::MULTILEVEL_READS);
        let mean = fitted("mean", ran.multilevel.mean());
        if ran.cluster.fits {
            rows.push(mean.why("The paper sees no difference to RHIK here."));
            continue;
        }
        rows.push(mean.paper_at_least(3.0).why(
            "The paper's text does not say whether 3 to 7 are of an access or the mean of a cluster.",
        ));
        rows.push(fitted("99 of 100 read at most", ran.multilevel.p99()).paper_at_most(7.0));
        let over = ran.multilevel.mean() / ran.rhik.mean();
        let name = ran.named("over RHIK");
        rows.push(Row::fitted(name, "", over, fits::MULTILEVEL_READS).paper_at_least(3.0));
    }
    Table { title: "Multi-level index: flash reads of an access".into(), rows }
}

fn absent(all: &[Ran]) -> Table {
    let mut rows = Vec::new();
    for ran in all.iter().filter(|ran| !ran.cluster.fits) {
        let (ours, other) = ran.absent;
        rows.push(Row::measured(ran.named("RHIK"), "reads", ours).paper_at_most(1.0));
        rows.push(
            Row::fitted(ran.named("multi-level"), "reads", other, fits::MULTILEVEL_READS)
                .why("An absent key is looked for on each level that its pages have spilled to."),
        );
    }
    Table { title: "Flash reads for keys that are not there, mean".into(), rows }
}

fn updates(all: &[Ran]) -> Table {
    let mut rows = Vec::new();
    for ran in all {
        let (read, written) = ran.rhik.rewritten;
        let (other_read, other_written) = ran.multilevel.rewritten;
        let mib = |pages: u64| (pages * PAGE_BYTES) as f64 / f64::from(1 << 20);
        rows.extend([
            Row::measured(ran.named("RHIK's tables"), "MiB", mib(ran.pages.0)),
            Row::measured(ran.named("the other's levels"), "MiB", mib(ran.pages.1)),
            Row::measured(ran.named("RHIK's rewrites read"), "pages", ran.rhik.each(read)),
            Row::measured(ran.named("RHIK writes"), "pages", ran.rhik.each(written)).why(
                "Tables that a full write buffer rewrites, and checkpoints. The paper has no \
                 write buffer: it changes a record page in DRAM and writes it later.",
            ),
            Row::measured(
                ran.named("the other's flushes read"),
                "pages",
                ran.multilevel.each(other_read),
            ),
            Row::measured(
                ran.named("the other writes"),
                "pages",
                ran.multilevel.each(other_written),
            )
            .why("Groups of pages that a full write buffer changes, and checkpoints."),
        ]);
    }
    Table { title: "Size of the index, and what an access's updates cost".into(), rows }
}

fn chart(all: &[Ran]) -> Chart {
    let points = |reads: fn(&Ran) -> f64| {
        all.iter().map(|ran| (ran.cluster.objects as f64, reads(ran))).collect::<Vec<_>>()
    };
    Chart {
        title: "Figure 4: flash reads of an access, by the objects of a cluster".into(),
        x: "objects",
        y: "reads",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series: vec![
            Series::ours("RHIK, mean", points(|ran| ran.rhik.mean())),
            Series::ours("multi-level, mean", points(|ran| ran.multilevel.mean())),
            Series::ours("multi-level, 99 of 100 at most", points(|ran| ran.multilevel.p99())),
        ],
    }
}
