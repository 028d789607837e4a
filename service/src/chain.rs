//! [`chain`]: an error with all its sources, for logs and replies.

use std::{error::Error, fmt};

/// Displays an error and all its sources, separated by colons. An error's own message does not contain its source.
///
/// # Examples
///
/// ```
/// let error = std::io::Error::other("no space left");
/// assert_eq!(service::chain(&error).to_string(), "no space left");
/// ```
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    fmt::from_fn(move |out| {
        write!(out, "{error}")?;
        let mut source = error.source();
        while let Some(error) = source {
            write!(out, ": {error}")?;
            source = error.source();
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Fault {
        #[error("cannot read the file")]
        Read(#[source] std::io::Error),
        #[error(transparent)]
        Same(#[from] Box<Fault>),
    }

    #[test]
    fn every_message_appears_once() {
        let error = Fault::from(Box::new(Fault::Read(std::io::Error::other("no space left"))));
        assert_eq!(chain(&error).to_string(), "cannot read the file: no space left");
    }
}
