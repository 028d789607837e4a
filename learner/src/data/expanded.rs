//! Rows expanded on the host into the inputs of a network. The codec of the representation does the work.

use games::{
    RowError, RowLayout,
    codec::{Candidates, Expander, Input},
};

/// One input of a network for a batch: an int32 array, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInput {
    /// Name of the exported graph's input.
    pub name: &'static str,
    /// Sizes of all dimensions.
    pub shape: Vec<usize>,
    /// Numbers of the array.
    pub numbers: Vec<i32>,
}

impl From<&Input<'_>> for HostInput {
    fn from(input: &Input<'_>) -> Self {
        Self {
            name: input.name,
            shape: input.shape(),
            numbers: input.numbers.to_vec(),
        }
    }
}

/// Policy entries over which the softmax of each sample is taken, if these are not all entries of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCandidates {
    /// Place of each candidate's logit in the network's flat output, sample after sample.
    pub logits: Vec<i64>,
    /// Place of each candidate in the flat `[samples, width]` matrix of candidates.
    pub places: Vec<i64>,
    /// Largest number of candidates of a sample.
    pub width: usize,
}

/// Expands adjacent valid rows.
///
/// # Errors
/// [`RowError`] of the first invalid row.
pub fn expand(layout: &RowLayout, rows: &[u32]) -> Result<Vec<HostInput>, RowError> {
    let mut expander = layout.codec().expander();
    for row in layout.split(rows) {
        expander.push(row)?;
    }
    Ok(expander.inputs().iter().map(HostInput::from).collect())
}

/// Expands the samples of a batch one by one, and collects their candidates.
#[derive(Debug)]
pub(crate) struct BatchExpander {
    expander: Box<dyn Expander>,
    logits: Vec<i64>,
    /// Number of candidates of each sample that has some.
    counts: Vec<usize>,
}

impl BatchExpander {
    pub(crate) fn new(layout: &RowLayout) -> Self {
        Self {
            expander: layout.codec().expander(),
            logits: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Adds a sample and returns its candidates; `None` if these are all entries of the policy.
    ///
    /// # Errors
    /// [`RowError`] if the row is invalid.
    pub(crate) fn push(&mut self, row: &[u32]) -> Result<Option<Candidates>, RowError> {
        self.expander.push(row)?;
        let candidates = self.expander.candidates();
        if let Some(candidates) = &candidates {
            self.counts.push(candidates.entries.len());
            self.logits
                .extend(candidates.logits.iter().map(|&logit| logit as i64));
        }
        Ok(candidates)
    }

    /// Returns the inputs of all samples, and their candidates.
    pub(crate) fn finish(mut self) -> (Vec<HostInput>, Option<HostCandidates>) {
        let inputs = self.expander.inputs().iter().map(HostInput::from).collect();
        let width = self.counts.iter().copied().max();
        let candidates = width.map(|width| HostCandidates {
            logits: self.logits,
            places: (0..)
                .zip(&self.counts)
                .flat_map(|(sample, &count)| sample * width..sample * width + count)
                .map(|place: usize| place as i64)
                .collect(),
            width,
        });
        (inputs, candidates)
    }
}

#[cfg(test)]
mod tests {
    use games::{Game as _, Symmetry, connect_four::ConnectFour};

    use super::*;

    #[test]
    fn rows_of_planes_are_one_input_and_have_no_candidates() {
        let layout = ConnectFour::layout(Default::default());
        let mut rows = Vec::new();
        ConnectFour::EMPTY.write_row(Default::default(), Symmetry::IDENTITY, &mut rows);
        let mut batch = BatchExpander::new(&layout);
        assert_eq!(batch.push(&rows).unwrap(), None);
        let (inputs, candidates) = batch.finish();
        assert_eq!(candidates, None);
        assert_eq!(inputs, expand(&layout, &rows).unwrap());
        assert_eq!(
            (inputs[0].name, inputs[0].shape.as_slice()),
            ("indices", &[1, 43][..])
        );
        assert!(expand(&layout, &rows[1..]).is_err());
    }
}
