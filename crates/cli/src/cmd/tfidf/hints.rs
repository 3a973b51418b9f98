//! Errors of the library with the options of the command that solve them, where they name no field of an option.

use nandex_tfidf::Error;

use crate::cmd::document_index::with_hint;

/// Adds the option to change to an error, if there is one.
pub fn explained(error: Error) -> anyhow::Error {
    let hint = hint(&error);
    with_hint(error, hint)
}

fn hint(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::NoSpace(nandex::Error::ValuesFull { .. }) => "an index that is built again grows",
        Error::Input(error) => return crate::texts::hint(error),
        Error::Repeated { .. } => "--skip-repeats leaves out those with the same text",
        Error::DocumentOverRam { .. } => "--ram",
        Error::NoTerms { .. } => "--min-df, --max-df",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_option_and_stays_what_it_is() {
        let explained = explained(Error::NoTerms { reason: String::new() });
        assert!(nandex::raw::words(explained.as_ref()).ends_with(" (--min-df, --max-df)"));
        assert!(explained.downcast_ref::<Error>().is_some());
        assert_eq!(
            nandex::raw::words(super::explained(Error::Unsure).as_ref()),
            Error::Unsure.to_string()
        );
    }
}
