//! How calls fail: a number for the caller, and words for [`kvs_last_error`].

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::path::Path;

use nandex_kvssd::{Error, ResultCode};

/// What a call gives.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ResultCode,
    words: String,
}

impl Failure {
    pub(crate) fn new(code: ResultCode, words: impl Into<String>) -> Self {
        Self { code, words: words.into() }
    }

    /// The same failure, with the file that it is of.
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

/// The number of a result; keeps the words of a failure for the thread.
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

/// What the last call of this thread that failed has to say, or an empty string. It is valid until the thread's next
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn kvs_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}
