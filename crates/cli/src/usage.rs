//! Wrong values on a command line: the error for them, the flags that they belong to, and what a run knows of its own
//! command line when it reports an error.

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command};

/// A value of the command line that cannot work, or values that do not work together. Ends the run with the exit code
/// of an invalid command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Returns early with a [`Usage`](crate::usage::Usage) error, as `anyhow::bail` does with another.
#[macro_export]
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::usage::Usage(format!($($text)*)).into())
    };
}

/// Fields of the libraries whose flags have another name than the field without its unit.
const FLAGS: [(&str, &str); 13] = [
    ("capacity_bytes", "capacity"),
    ("chunk_bytes", "avg"),
    ("content_bytes", "size"),
    ("flash_bytes_max", "flash"),
    ("key_bytes_max", "key-max"),
    ("key_bytes_min", "key-min"),
    ("ngrams", "ngram"),
    ("pairs_max", "pairs"),
    ("request_bytes", "request"),
    ("round_trips", "count"),
    ("rows", "bands"),
    ("stream_bytes", "bytes"),
    ("value_bytes_max", "value-max"),
];

/// The command line of this run, as far as errors need it.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// Whether errors are printed as JSON.
    pub json: bool,
    /// The command and its verbs, such as `nandex filter build`.
    verb: String,
    /// The flags of the verb, without hyphens.
    flags: Vec<String>,
    /// The words of the command line after the command.
    words: Vec<String>,
}

impl CommandLine {
    /// Returns the command line before it has been parsed.
    #[must_use]
    pub fn unparsed(name: &str) -> Self {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let options = words.iter().take_while(|word| *word != "--");
        let json = options.into_iter().any(|word| word == "--json");
        Self { json, verb: name.to_owned(), flags: Vec::new(), words }
    }

    /// Adds the verb and its flags.
    #[must_use]
    pub fn parsed(mut self, command: &Command, matches: &ArgMatches) -> Self {
        let (mut command, mut matches) = (command, matches);
        while let Some((name, inner)) = matches.subcommand()
            && let Some(verb) = command.find_subcommand(name)
        {
            self.verb = format!("{} {name}", self.verb);
            (command, matches) = (verb, inner);
        }
        self.flags =
            command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
        self
    }

    /// Returns the flag of the verb that sets a field of a library, with its hyphens.
    pub fn flag_of(&self, field: &str) -> Option<String> {
        let special = FLAGS.iter().find(|(it, _)| *it == field).map(|(_, flag)| (*flag).to_owned());
        let plain = field.to_lowercase().replace([' ', '_'], "-");
        let short = plain.trim_end_matches("-max").trim_end_matches("-bytes").to_owned();
        let mut names = special.into_iter().chain([plain, short]);
        names.find(|name| self.flags.contains(name)).map(|name| format!("--{name}"))
    }

    /// Returns the flag, the file or the other word of the command line that a message is about; the verb if it names
    /// none.
    #[must_use]
    pub fn place(&self, message: &str) -> String {
        let flag = self.flags.iter().filter_map(|flag| {
            let flag = format!("--{flag}");
            let at = message.find(&flag)?;
            let is_whole =
                !message[at + flag.len()..].starts_with(|c: char| c == '-' || c.is_alphanumeric());
            is_whole.then_some((at, flag))
        });
        let word = || self.words.iter().filter(|word| word.len() > 1 && message.contains(*word));
        let first = flag.min().map(|(_, flag)| flag).or_else(|| word().next().cloned());
        first.unwrap_or_else(|| self.verb.clone())
    }

    /// Returns the message and the place of an error of the parser of the command line.
    #[must_use]
    pub fn explain(&self, error: &clap::Error) -> (String, String) {
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        let lines = first.trim_start_matches("error: ").lines().map(str::trim);
        let message = lines.collect::<Vec<_>>().join(" ");
        let place = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(arg)) => Some(arg.clone()),
            Some(ContextValue::Strings(args)) => args.first().cloned(),
            _ => None,
        };
        (message, place.unwrap_or_else(|| self.verb.clone()))
    }
}
