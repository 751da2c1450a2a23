//! Runs in, text out: the formats as their readers see them.

mod fixtures;
mod formats;
mod parsers;
mod table;
