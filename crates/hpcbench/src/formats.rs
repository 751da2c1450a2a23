//! Which exporter prints which format.

use hpcbench_report::{Csv, Exporter, Json, JsonLines, Table, TableOptions};

use crate::cli::Format;

/// The exporter of a format; the table's options matter to the table alone.
pub fn exporter(format: Format, table: TableOptions) -> Box<dyn Exporter> {
    match format {
        Format::Table => Box::new(Table::new(table)),
        Format::Csv => Box::new(Csv),
        Format::Json => Box::new(Json),
        Format::Jsonl => Box::new(JsonLines),
    }
}
