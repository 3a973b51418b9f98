//! Failures as the exceptions of `nandex/_errors.py`: each is a `nandex.Error` and the built-in that fits.

use std::io;

use nandex::Error;
use nandex::raw::{device, store};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// The Linux number of an error that no `io::Error` carries.
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENOENT: i32 = 2;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

/// The exceptions that the crate raises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Raised {
    /// An impossible option.
    Config,
    /// A key or value that the structure does not take.
    Input,
    /// A key or value of a type that no structure takes.
    InputType,
    /// A closed handle.
    Closed,
    /// A handle of the parent process.
    Forked,
    /// A file that is no volume, or of another version.
    Format,
    /// An operation that this kind of structure does not support.
    Unsupported,
    /// More RAM than there is.
    Ram,
    /// A missing key.
    KeyNotFound,
    /// A defect of nandex.
    Internal,
    /// This and the following have an `errno`.
    InUse,
    Exists,
    Missing,
    ReadOnly,
    Full,
    Damaged,
    Device,
}

impl Raised {
    fn class(self) -> &'static str {
        match self {
            Self::Config => "ConfigError",
            Self::Input => "InputError",
            Self::InputType => "InputTypeError",
            Self::Closed => "ClosedError",
            Self::Forked => "ForkedError",
            Self::Format => "FormatError",
            Self::Unsupported => "UnsupportedError",
            Self::Ram => "RamError",
            Self::KeyNotFound => "KeyNotFoundError",
            Self::Internal => "InternalError",
            Self::InUse => "InUseError",
            Self::Exists => "ExistsError",
            Self::Missing => "MissingError",
            Self::ReadOnly => "ReadOnlyError",
            Self::Full => "FullError",
            Self::Damaged => "DamagedError",
            Self::Device => "DeviceError",
        }
    }

    /// Creates the exception with a message.
    #[expect(
        clippy::new_ret_no_self,
        clippy::wrong_self_convention,
        reason = "a value names a class, and makes its instances"
    )]
    pub fn new(self, message: impl Into<String>) -> PyErr {
        let message = message.into();
        Python::attach(|py| self.instance(py, (message,)))
    }

    /// Creates the exception with an object, as `KeyError` has the key.
    pub fn with(self, object: &Bound<'_, PyAny>) -> PyErr {
        self.instance(object.py(), (object,))
    }

    /// Creates the exception with an `errno` and a message, for those that are an `OSError`.
    fn with_errno(self, errno: i32, message: String) -> PyErr {
        Python::attach(|py| self.instance(py, (errno, message)))
    }

    fn instance<'py>(self, py: Python<'py>, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
        static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let import = || py.import("nandex._errors").map(Bound::unbind);
        let made = MODULE
            .get_or_try_init(py, import)
            .and_then(|module| module.bind(py).getattr(self.class())?.call1(arguments));
        made.map_or_else(|error| error, PyErr::from_value)
    }
}

/// Returns the exception for a failure of the index.
pub fn raise(error: Error) -> PyErr {
    let message = in_python(&error.to_string());
    match error {
        Error::Store(error) => raise_store(&error, message),
        Error::Device(error) => raise_device(&error, message),
        Error::Width { .. } | Error::TooLong { .. } => Raised::Input.new(message),
        Error::NotThere { .. } | Error::CountRange { .. } => Raised::Input.new(message),
        Error::GrowthStopped { .. }
        | Error::Full { .. }
        | Error::ValuesFull { .. }
        | Error::FilterFull { .. }
        | Error::KeysFull { .. } => Raised::Full.with_errno(ENOSPC, message),
        Error::FilterDamaged { .. } => Raised::Damaged.with_errno(EIO, message),
        Error::NoDeletes { .. } => Raised::Unsupported.new(message),
        Error::TooLittleRam { reason, .. } => Raised::Ram.new(in_python(&format!("ram: {reason}"))),
        Error::Config { .. } | Error::ShortLog { .. } => Raised::Config.new(message),
        _ => Raised::Internal.new(message),
    }
}

/// Rewords a message's advice in Python's terms.
fn in_python(message: &str) -> String {
    let pairs = [
        ("create it first (in a program: `Create::OpenOrCreate`)", "mode=\"c\" creates it"),
        ("nandex::options().ram(...)", "nandex.open(path, ram=...)"),
        ("nandex::options().log(...)", "nandex.open(path, log=...)"),
        ("drop a structure first", "close a structure first"),
        ("open it without .counts()", "open it with db.filter(...)"),
        (
            "when_full = grow, and was required with reject",
            "grow=True, and was required with grow=False",
        ),
        (
            "when_full = reject, and was required with grow",
            "grow=False, and was required with grow=True",
        ),
    ];
    let message =
        pairs.iter().fold(message.to_owned(), |text, (rust, python)| text.replace(rust, python));
    widths_in_python(&message).unwrap_or(message)
}

/// Rewords the advice to ask for the widths that a table has; none if the message does not give it.
fn widths_in_python(message: &str) -> Option<String> {
    let (before, rest) = message.split_once("ask with .widths(")?;
    let (widths, after) = rest.split_once(')')?;
    let (key, value) = widths.split_once(", ")?;
    Some(format!("{before}ask with key={key}, value={value}{after}"))
}

fn raise_store(error: &store::Error, message: String) -> PyErr {
    use store::Error as E;
    match error {
        E::Device(error) => raise_device(error, message),
        E::Corrupt { .. } | E::Stale { .. } | E::Truncated { .. } => {
            Raised::Damaged.with_errno(EIO, message)
        }
        E::Foreign { .. } | E::Version { .. } => Raised::Format.new(message),
        E::Poisoned { .. } => Raised::Device.with_errno(EIO, message),
        E::ReadOnly => Raised::ReadOnly.with_errno(EROFS, message),
        E::NoSuchStructure { .. } => Raised::Missing.with_errno(ENOENT, message),
        E::Exists { .. } => Raised::Exists.with_errno(EEXIST, message),
        E::Busy { .. } => Raised::InUse.with_errno(EBUSY, message),
        E::LogFull { .. } | E::RunFull { .. } => Raised::Full.with_errno(ENOSPC, message),
        E::Config { .. } | E::Kind { .. } | E::LogDevice { .. } => Raised::Config.new(message),
        _ => Raised::Internal.new(message),
    }
}

fn raise_device(error: &device::Error, message: String) -> PyErr {
    use device::Error as E;
    match error {
        E::Io { source, .. } => raise_io(source, Raised::Device, message),
        E::Open { source, .. } => raise_open(source, message),
        E::Locked { .. } => Raised::InUse.with_errno(EAGAIN, message),
        E::Forked { .. } => Raised::Forked.new(message),
        E::ReadOnly { .. } => Raised::ReadOnly.with_errno(EROFS, message),
        E::NoSpace { .. } => Raised::Full.with_errno(ENOSPC, message),
        E::Entropy { source } => raise_io(source, Raised::Device, message),
        E::Member { source, .. } => raise_device(source, message),
        _ => Raised::Device.with_errno(EIO, message),
    }
}

fn raise_open(source: &io::Error, message: String) -> PyErr {
    let raised = match source.kind() {
        io::ErrorKind::NotFound => Raised::Missing,
        io::ErrorKind::AlreadyExists => Raised::Exists,
        _ => Raised::Device,
    };
    raise_io(source, raised, message)
}

/// Returns the exception for a failed system call, with its `errno`.
pub fn raise_io(source: &io::Error, raised: Raised, message: String) -> PyErr {
    let of_kind = match source.kind() {
        io::ErrorKind::NotFound => ENOENT,
        io::ErrorKind::AlreadyExists => EEXIST,
        io::ErrorKind::PermissionDenied => EACCES,
        _ => EIO,
    };
    raised.with_errno(source.raw_os_error().unwrap_or(of_kind), message)
}
