//! The address of the run's replay store.
//!
//! Earlier releases divided a run's games among several stores, which `replay.address` listed as `name=host:port,name=host:port`.
//! A run has one store now; a list is refused, and the name of a single store is ignored.

/// Error: no address, or the addresses of several replay stores.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreAddressError {
    /// The address is empty.
    #[error("there is no replay store in `{0}`; write host:port")]
    Empty(String),
    /// Several stores are listed.
    #[error(
        "`{0}` lists several replay stores, and a run has one: one store takes hundreds of thousands of positions a second. \
         Keep one of them and carry the games of the others into it: `minuet games export FILE --store HOST:PORT` for each \
         of the others, `minuet games import FILE --store HOST:PORT` for the one that is kept"
    )]
    Several(String),
}

/// Returns the address `host:port` in `text`, which is `host:port` or `name=host:port`. The address itself is not checked.
///
/// # Errors
/// [`StoreAddressError`] if there is no address or more than one.
pub fn store_address(text: &str) -> Result<&str, StoreAddressError> {
    if text.contains(',') {
        return Err(StoreAddressError::Several(text.into()));
    }
    let address = text.split_once('=').map_or(text, |(_, address)| address).trim();
    if address.is_empty() {
        return Err(StoreAddressError::Empty(text.into()));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_accepted_with_or_without_a_name() {
        assert_eq!(store_address("host:1"), Ok("host:1"));
        assert_eq!(store_address(" replay-store=host:1 "), Ok("host:1"));
    }

    #[test]
    fn a_list_of_stores_is_refused_with_the_way_to_merge_them() {
        for list in ["host:1,host:2", "a=host:1,b=host:2", "host:1,"] {
            let error = store_address(list).unwrap_err();
            assert_eq!(error, StoreAddressError::Several(list.into()));
            let text = error.to_string();
            assert!(
                text.contains("games export") && text.contains("games import"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_empty_address_is_refused() {
        for text in ["", " ", "name="] {
            assert_eq!(store_address(text), Err(StoreAddressError::Empty(text.into())));
        }
    }
}
