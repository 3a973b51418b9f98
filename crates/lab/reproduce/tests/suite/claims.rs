//! The page of claims, which is generated from a run of every experiment that answers one.

use std::fmt::Write;
use std::path::PathBuf;
use std::thread;

use nandex_html::shown;
use nandex_reproduce::{Answer, Claim, Paper, Verdict, all_claims};

use crate::outcome::run;

/// A claim, its number and what became of it; `None` if it was not tried.
type Decided = (Claim, Option<(f64, Verdict)>);

const HEAD: &str = "# What the papers claim\n\n\
    This page lists the claims of the five papers, and what became of each. It is generated: a test runs every \
    experiment that a claim\n\
    names, at scale 8192, and fails if a row does not exist or this page is stale. The list is \
    `crates/lab/reproduce/claims.txt`. To write\n\
    the page again:\n\n\
    ```text\n\
    NANDEX_DOCS=write cargo test -p nandex-reproduce --test suite claims\n\
    ```\n\n\
    A claim *comes out* if the row's number is as wanted. It is *arranged* if the number is as wanted because of a \
    fitted or assumed\n\
    constant, an input or the paper's own formula, which shows nothing. Where the paper prints no bound, what is \
    wanted was chosen here.\n\
    [The papers' experiments](reproduce.md) explains differences.\n\n";

fn docs(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/")).join(name)
}

/// Decides all claims, on two threads.
fn decide_all() -> Vec<Decided> {
    let all = all_claims();
    let half = |from: usize| {
        let some = all.iter().skip(from).step_by(2);
        let named = some.filter_map(|claim| Some((claim.paper, claim.experiment()?)));
        named.for_each(|(paper, name)| drop(run(paper, name)));
    };
    thread::scope(|scope| {
        scope.spawn(|| half(1));
        half(0);
    });
    let decide = |claim: Claim| {
        let decided = claim.experiment().map(|name| {
            let outcome = run(claim.paper, name).outcome;
            let decided = claim.decide(&outcome);
            decided.unwrap_or_else(|| panic!("{}: there is no such row of {name}", claim.number))
        });
        (claim, decided)
    };
    all.into_iter().map(decide).collect()
}

fn count(all: &[Decided], paper: Paper, verdict: Option<Verdict>) -> usize {
    let is = |it: &&Decided| it.0.paper == paper && it.1.map(|it| it.1) == verdict;
    all.iter().filter(is).count()
}

fn line((claim, decided): &Decided) -> String {
    let Claim { number, section, says, .. } = claim;
    match (claim.answer, decided) {
        (Answer::Row { experiment, above, below, wanted }, Some((ours, verdict))) => {
            let over = below.map_or(String::new(), |below| format!(" / {}", below.row));
            format!(
                "| {number} | {section} | {says} | `{experiment}`: {}{over} | {} | {} | {} |\n",
                above.row,
                wanted.shown(),
                shown(*ours),
                verdict.word()
            )
        }
        (Answer::NotTried(why), _) => {
            format!("| {number} | {section} | {says} | {why} | | | not tried |\n")
        }
        (Answer::Row { .. }, None) => unreachable!("{number} was tried"),
    }
}

fn page(all: &[Decided]) -> String {
    let mut out = HEAD.to_owned();
    out += "| paper | claims | come out | do not | arranged | not tried |\n|---|---:|---:|---:|---:|---:|\n";
    for paper in Paper::ALL {
        let of = |verdict| count(all, paper, verdict);
        let [come_out, do_not, arranged] =
            [Verdict::ComesOut, Verdict::DoesNot, Verdict::Arranged].map(|it| of(Some(it)));
        let (name, not_tried) = (paper.structure(), of(None));
        let sum = come_out + do_not + arranged + not_tried;
        let _ =
            writeln!(out, "| {name} | {sum} | {come_out} | {do_not} | {arranged} | {not_tried} |");
    }
    for paper in Paper::ALL {
        let _ = writeln!(out, "\n## {}", paper.title());
        let of_paper: Vec<_> = all.iter().filter(|it| it.0.paper == paper).collect();
        let fails = |it: &&Decided| it.1.is_some_and(|it| it.1 == Verdict::DoesNot);
        let (against, others): (Vec<&Decided>, Vec<_>) = of_paper.into_iter().partition(fails);
        for (title, some) in [("Does not come out", against), ("All others", others)] {
            if !some.is_empty() {
                let _ = writeln!(
                    out,
                    "\n**{title}**\n\n| claim | section | in short | row, or why not | wanted | ours | outcome \
                    |\n|---|---|---|---|---|---:|---|"
                );
                some.into_iter().for_each(|it| out += &line(it));
            }
        }
    }
    out
}

/// Returns the list of claims that do not come out, for the page on then and now.
fn against(all: &[Decided]) -> String {
    let mut out = String::new();
    for (claim, decided) in all {
        if let (Some((ours, Verdict::DoesNot)), Answer::Row { wanted, .. }) =
            (decided, claim.answer)
        {
            let Claim { number, paper, section, says, .. } = claim;
            let _ = writeln!(
                out,
                "| {number} | {}, {section} | {says} | {} | {} |",
                paper.structure(),
                wanted.shown(),
                shown(*ours)
            );
        }
    }
    out
}

const BEGIN: &str =
    "| claim | paper | what does not come out | wanted | ours |\n|---|---|---|---|---:|\n";

#[test]
fn the_page_of_claims_is_that_of_a_run_and_then_and_now_begins_with_what_does_not_come_out() {
    let all = decide_all();
    let (claims, now) = (docs("lab/claims.md"), docs("explanation/then-and-now.md"));
    let then_and_now = std::fs::read_to_string(&now).expect("the page can be read");
    let from = then_and_now.find(BEGIN).expect("the page has the table") + BEGIN.len();
    let to = from + then_and_now[from..].find("\n\n").expect("it ends") + 1;
    let listed = format!("{}{}{}", &then_and_now[..from], against(&all), &then_and_now[to..]);
    if std::env::var("NANDEX_DOCS").is_ok_and(|it| it == "write") {
        std::fs::write(&claims, page(&all)).expect("the page can be written");
        std::fs::write(&now, listed).expect("the page can be written");
        return;
    }
    let written = std::fs::read_to_string(&claims).expect("the page can be read");
    assert_eq!(written, page(&all), "docs/lab/claims.md is stale");
    assert_eq!(then_and_now, listed, "docs/explanation/then-and-now.md is stale");
}
