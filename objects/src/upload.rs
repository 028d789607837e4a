//! Writes objects of any length. Long objects travel in parts, so that each request is short enough to repeat.

use bytes::Bytes;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutResult, WriteMultipart, path::Path as StorePath,
};

/// Length in bytes from which an object should travel in parts.
pub const MULTIPART_BYTES: usize = 32 << 20;
/// Length of every part but the last, in bytes. S3 demands at least 5 MiB, and accepts 10,000 parts.
pub const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 4;

/// Writes an object and replaces an existing one, by one request or in parts. A reader sees the old object or the whole new
/// one.
///
/// # Errors
/// The store's error; the old object is unchanged then.
pub async fn write(
    store: &dyn ObjectStore,
    path: &StorePath,
    bytes: Bytes,
    in_parts: bool,
) -> Result<PutResult, Error> {
    if !in_parts {
        return store.put(path, bytes.into()).await;
    }
    let upload = store.put_multipart(path).await?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    for part in 0..bytes.len().div_ceil(PART_BYTES) {
        if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE).await {
            // Parts of a failed upload take space in the store until its rules remove them.
            let _ = upload.abort().await;
            return Err(error);
        }
        let begin = part * PART_BYTES;
        upload.put(bytes.slice(begin..(begin + PART_BYTES).min(bytes.len())));
    }
    upload.finish().await
}
