//! Each engine in a process of its own: none inherits memory from the previous one, and one that its memory
//! limit kills does not affect the others.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use nandex_bench::loaded::Loaded;
use nandex_bench::plan::{Plan, in_force};
use nandex_bench::report::Report;
use nandex_bench::session::{self, Surroundings};
use nandex_bench::subject::Maker;
use nandex_bench::text;
use serde_json::json;

/// The way in which this program restarts itself for one engine.
pub struct Apart {
    /// The flag that names an engine.
    pub flag: &'static str,
    /// The environment of such a process.
    pub environment: &'static [(&'static str, &'static str)],
    /// Whether the JSON of one report is an array, like that of several.
    pub array_of_one: bool,
}

impl Apart {
    /// Returns whether this is such a process.
    pub fn is_here(&self) -> bool {
        self.environment.iter().all(|(name, _)| std::env::var_os(name).is_some())
    }

    /// Runs each engine in its own process and prints all reports; `loaded_first` decides which are loaded by
    /// another process before.
    #[allow(dead_code, reason = "a binary runs engines one after the other or in rounds")]
    pub fn run_each(
        &self,
        plan: &Plan,
        engines: &[&dyn Maker],
        loaded_first: impl Fn(&dyn Maker) -> bool,
    ) -> Result<()> {
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        for &engine in engines {
            let loaded = if loaded_first(engine) { self.load(plan, engine) } else { Ok(()) };
            match loaded.and_then(|()| self.run(engine, Process::Measures)) {
                Ok(report) => reports.push(report),
                Err(error) => failures.push(failure(engine, &error)),
            }
        }
        self.finish(plan, &reports, &failures)
    }

    /// Runs all engines as often as the plan has repetitions, one after the other in each round, so that the
    /// drive's drift from minute to minute affects all alike. Each repetition is a process of its own.
    #[allow(dead_code, reason = "a binary runs engines one after the other or in rounds")]
    pub fn run_rounds(
        &self,
        plan: &Plan,
        engines: &[&dyn Maker],
        loaded_first: impl Fn(&dyn Maker) -> bool,
    ) -> Result<()> {
        let (mut rounds, mut failures) = (vec![Vec::new(); engines.len()], Vec::new());
        for round in 1..=plan.runs {
            for (&engine, reports) in engines.iter().zip(&mut rounds) {
                let loaded = if loaded_first(engine) { self.load(plan, engine) } else { Ok(()) };
                match loaded.and_then(|()| self.run(engine, Process::MeasuresOnce)) {
                    Ok(report) => reports.push(report),
                    Err(error) => {
                        failures.push(format!("round {round}: {}", failure(engine, &error)))
                    }
                }
            }
        }
        let reports: Vec<_> = rounds.into_iter().filter_map(Report::of_rounds).collect();
        self.finish(plan, &reports, &failures)
    }

    fn finish(&self, plan: &Plan, reports: &[Report], failures: &[String]) -> Result<()> {
        self.print(reports, plan.json)?;
        ensure!(failures.is_empty(), "not all engines went through:\n{}", failures.join("\n"));
        Ok(())
    }

    /// Loads an engine without a memory limit: a load is not measured, and none of its memory or cached pages
    /// remains for the process that looks up.
    fn load(&self, plan: &Plan, engine: &dyn Maker) -> Result<()> {
        if Loaded::find(&plan_of(plan, engine), engine).is_none() {
            self.run(engine, Process::Loads).context("it could not be loaded")?;
        }
        Ok(())
    }

    /// Runs this program again, with the same settings except for one engine; a load has no memory limit.
    fn run(&self, engine: &dyn Maker, process: Process) -> Result<Report> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut arguments = std::env::args_os().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--all") => {}
                Some(text) if text.starts_with("--cgroup") && process == Process::Loads => {}
                Some(text) if text == self.flag => drop(arguments.next()),
                Some(text)
                    if text.strip_prefix(self.flag).is_some_and(|it| it.starts_with('=')) => {}
                _ => drop(command.arg(argument)),
            }
        }
        let output = command
            .args(["--json", self.flag, engine.name()])
            .args(process.arguments())
            .envs(self.environment.iter().copied())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start a process for it")?;
        ensure!(output.status.success(), "{}{}", output.status, killed(output.status));
        let json = serde_json::from_slice(&output.stdout).context("it printed no JSON")?;
        Report::parse(&json).context("it printed no report")
    }

    /// Prints the reports as JSON, or as text in one table.
    fn print(&self, reports: &[Report], json: bool) -> Result<()> {
        match reports {
            [report] if json && !self.array_of_one => write(&format!("{}\n", report.json())),
            _ if json => {
                let all: Vec<_> = reports.iter().map(Report::json).collect();
                write(&format!("{}\n", json!(all)))
            }
            _ => {
                let texts: String = reports.iter().map(|report| report.text() + "\n").collect();
                let several = reports.len() > 1;
                write(&if several { texts + &text::summary(reports) } else { texts })
            }
        }
    }
}

/// The task of a process of one engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "a binary runs engines one after the other or in rounds")]
enum Process {
    /// Measures all repetitions.
    Measures,
    /// Measures one repetition.
    MeasuresOnce,
    /// Loads the engine only.
    Loads,
}

impl Process {
    /// Returns its additional arguments; a later flag overrides an earlier one.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Measures => &[],
            Self::MeasuresOnce => &["--runs", "1"],
            Self::Loads => &["--workload", "load"],
        }
    }
}

fn failure(engine: &dyn Maker, error: &anyhow::Error) -> String {
    format!("{}: {error:#}", engine.name())
}

fn killed(status: ExitStatus) -> &'static str {
    match status.signal() {
        Some(9) => {
            ": killed, most likely by its memory limit; give more with --ram or --cgroup=BYTES"
        }
        _ => "",
    }
}

/// Returns the plan with a directory of the engine's own.
fn plan_of(plan: &Plan, engine: &dyn Maker) -> Plan {
    Plan { dir: plan.dir.join(engine.name()), ..plan.clone() }
}

/// Runs one engine in this process and prints its report.
pub fn run_here(plan: &Plan, engine: &dyn Maker, allocated_bytes: fn() -> u64) -> Result<()> {
    let cgroup = plan.enter_cgroup()?;
    let report = session::run(
        &plan_of(plan, engine),
        engine,
        Surroundings {
            allocated_bytes,
            memory_limit: &|| in_force(cgroup.as_ref()),
            progress: &|sentence| eprintln!("{}: {sentence}", engine.name()),
        },
    )?;
    let text = if plan.json { format!("{}\n", report.json()) } else { report.text() };
    write(&text)
}

fn write(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
