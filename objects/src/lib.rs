//! Object stores by address: a folder, the process's memory, or a bucket with S3's interface.
//!
//! | module | contents |
//! |---|---|
//! | [`location`] | opens a store from a folder or a URL |
//! | `s3` | stores on `s3://` (feature `s3`) |
//! | [`upload`] | writes objects of any length |
//!
//! ```
//! use object_store::{ObjectStoreExt as _, path::Path};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let opened = objects::open(&folder.path().to_string_lossy(), [])?;
//! let path = Path::from("games/1");
//! objects::write(opened.store.as_ref(), &path, "a game".into(), false).await?;
//! assert_eq!(opened.store.get(&path).await?.bytes().await?, "a game");
//! # Ok(())
//! # }
//! ```

pub mod location;
#[cfg(feature = "s3")]
mod s3;
pub mod upload;

pub use location::{LocationError, Opened, environment, open};
pub use upload::write;
