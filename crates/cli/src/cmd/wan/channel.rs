//! The channel to the other side: a command, or stdin and stdout.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The time that a command may take to end after its channel was closed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval of the checks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The two directions to the other side, and the command if there is one.
pub struct Channel {
    /// The direction from the other side.
    pub from: Box<dyn Read + Send>,
    /// The direction to the other side.
    pub to: Box<dyn Write>,
    /// The command to wait for.
    pub ends: Ends,
}

/// The command of a channel, if it has one.
pub struct Ends(Option<(Child, String)>);

impl Channel {
    /// Starts the command in a shell, or uses stdin and stdout.
    ///
    /// # Errors
    /// A shell that cannot be started.
    pub fn open(command: Option<&str>) -> Result<Self> {
        let Some(command) = command else {
            let (from, to) = (Box::new(io::stdin()), Box::new(io::stdout()));
            return Ok(Self { from, to, ends: Ends(None) });
        };
        let (child, to, from) = start(command)?;
        let ends = Ends(Some((child, command.to_owned())));
        Ok(Self { from: Box::new(from), to: Box::new(to), ends })
    }
}

fn start(command: &str) -> Result<(Child, ChildStdin, ChildStdout)> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().with_context(|| format!("cannot start `{command}`"))?;
    let both = child.stdin.take().zip(child.stdout.take());
    let (to, from) = both.context("a command that was started has no pipes")?;
    Ok((child, to, from))
}

impl Ends {
    /// Waits for the command, whose channel is closed by now, and kills one that does not end. An error of ours
    /// precedes its own.
    ///
    /// # Errors
    /// The error of `result`; a failed command.
    pub fn end<T>(self, result: Result<T>) -> Result<T> {
        let Some((mut child, command)) = self.0 else { return result };
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().with_context(|| format!("cannot wait for `{command}`"))? {
                Some(status) => break status,
                None if begun.elapsed() < END_TIMEOUT => thread::sleep(LOOK_EVERY),
                None => {
                    // The command is ours, and its output is no longer read.
                    let _ = child.kill();
                    break child.wait().with_context(|| format!("cannot wait for `{command}`"))?;
                }
            }
        };
        let value = result.with_context(|| format!("the stream through `{command}`"))?;
        if !status.success() {
            bail!("`{command}` has the whole stream and then gave {status}; see what it says");
        }
        Ok(value)
    }
}
