//! Writing objects of any length: what is long travels in parts, so that no request is too long to repeat.

use bytes::Bytes;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutResult, WriteMultipart, path::Path as StorePath,
};

/// Objects from this length on should travel in parts.
pub const MULTIPART_BYTES: usize = 32 << 20;
/// Length of a part but the last; S3 wants at least 5 MiB, and takes 10,000 parts.
pub const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 4;

/// Writes an object, whatever was there; `in_parts` where it should not be one request. Readers see the old one or the whole
/// new one.
///
/// # Errors
/// What the store reports; nothing has changed then.
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
            // What the store keeps of a broken upload costs space until its rules expire it.
            let _ = upload.abort().await;
            return Err(error);
        }
        let begin = part * PART_BYTES;
        upload.put(bytes.slice(begin..(begin + PART_BYTES).min(bytes.len())));
    }
    upload.finish().await
}
