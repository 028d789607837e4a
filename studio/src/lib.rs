//! The studio: pages about a run, in the browser, served by Minuet itself.
//!
//! The pages read a run's folder and ask its services. They change nothing but the studio's own searches and saved games.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | arguments of `minuet studio` |
//! | [`server`] | from the arguments to an open door, the address of each page, and the end of the process |
//! | [`run`](mod@run) | the run that is shown, and its checkpoints |
//! | [`app`] | the state that all pages share |
//! | [`security`] | refused hosts, refused cross-site requests, headers of every reply |
//! | [`assets`] | style sheets, scripts and pictures, embedded |
//! | [`page`] | frames of pages: head, navigation, main part |
//! | [`failure`] | errors as pages |
//! | [`form`] | fields of forms |
//! | [`board`] | a position as SVG, for all pages |
//! | [`play`] | a person plays, and analyses, against any checkpoint |
//! | [`explore`] | the tree of a search, node by node |
//! | [`live`] | parts of a page that change, and their stream |
//! | [`figures`] | figures over time, from the files that the roles write |
//! | [`store`] | the stored games |
//! | [`chart`](mod@chart) | curves |
//! | [`overview`] | page: the state of the run |
//! | [`records`] | pages: the stored games, and the replay of one |
//! | [`learn`] | page: the same positions, as checkpoints of different ages see them |
//! | [`matches`] | page: the ladder, and every rated match |
//! | [`compare`] | page: this run compared with others in the same folder |
//! | [`settings`] | page: every setting, those that differ from a new run first |
//! | [`review`](mod@review) | reviews of games as one HTML file |
//! | [`report`] | the run as one HTML file |

pub mod app;
pub mod arguments;
pub mod assets;
pub mod board;
pub mod chart;
pub mod compare;
pub mod explore;
pub mod failure;
pub mod figures;
pub mod form;
pub mod learn;
pub mod live;
pub mod matches;
pub mod overview;
pub mod page;
pub mod play;
pub mod records;
pub mod report;
pub mod review;
pub mod run;
pub mod security;
pub mod server;
pub mod settings;
pub mod store;

pub use arguments::Arguments;
pub use server::run;
