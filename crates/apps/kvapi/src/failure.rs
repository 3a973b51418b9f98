//! Failures of calls: a number for the caller, and words for [`kvs_last_error`].

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::path::Path;

use nandex_kvssd::{Error, ResultCode};

/// The result of a call.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// The reason why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ResultCode,
    words: String,
}

impl Failure {
    pub(crate) fn new(code: ResultCode, words: impl Into<String>) -> Self {
        Self { code, words: words.into() }
    }

    /// Adds the file to the failure.
    pub(crate) fn at(self, path: &Path) -> Self {
        Self { words: format!("{}: {}", path.display(), self.words), ..self }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(ResultCode::ParamInvalid, format!("{what} is null"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<nandex::Error> for Failure {
    fn from(error: nandex::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<nandex::raw::store::Error> for Failure {
    fn from(error: nandex::raw::store::Error) -> Self {
        Error::from(error).into()
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the number of a result, and stores the words of a failure for the thread.
pub(crate) fn number(result: Result) -> u32 {
    match result {
        Ok(()) => ResultCode::Success.number().into(),
        Err(Failure { code, words }) => {
            let words = CString::new(words.replace('\0', "?")).unwrap_or_default();
            LAST.set(words);
            code.number().into()
        }
    }
}

/// Returns the words of the last failed call of this thread, or an empty string. It is valid until the thread's next
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn kvs_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
