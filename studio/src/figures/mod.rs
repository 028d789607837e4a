//! Figures of a run over time, read from the files that its roles write.
//!
//! | module | contents |
//! |---|---|
//! | [`series`] | a curve in a bounded number of points |
//! | [`learning`] | losses of training and of held-out games |
//! | [`journal`] | what `minuet up` recorded: the newest figures, and events |
//! | [`words`] | numbers and times as people read them |

pub mod journal;
pub mod learning;
pub mod series;
pub mod words;
