//! A ticket as CSV for spreadsheets: a row for each host and setting that is not right.
//!
//! As RFC 4180 wants it, in UTF-8 with a byte order mark (Excel takes it for another encoding without), and with
//! cells that a spreadsheet would compute made plain text.

use crate::error::{Error, Result};

use super::plan_text::present;
use super::ticket::Ticket;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The columns.
pub const COLUMNS: &[&str] = &[
    "ticket",
    "batch",
    "host",
    "cluster",
    "replica_role",
    "vendor",
    "model",
    "serial",
    "asset_tag",
    "site",
    "rack",
    "rack_unit",
    "bmc_address",
    "bios_version",
    "setting",
    "menu",
    "attribute",
    "present",
    "target",
    "verdict",
    "confidence",
    "source",
    "evidence",
    "reason",
];

/// Writes the ticket.
pub fn write(ticket: &Ticket) -> Result<Vec<u8>> {
    let mut writer =
        ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(BYTE_ORDER_MARK.to_vec());
    let failed = |error: ::csv::Error| Error::system(format!("cannot write the ticket as CSV: {error}"));
    writer.write_record(COLUMNS).map_err(failed)?;
    for host in &ticket.hosts {
        let record = &host.record;
        let batch = host.batch.to_string();
        for finding in &host.findings {
            let cells = [
                ticket.id.as_str(),
                &batch,
                &record.name,
                &record.cluster,
                record.replica_role.word(),
                &record.vendor,
                &record.model,
                &record.serial,
                &record.asset_tag,
                &record.site,
                &record.rack,
                &record.rack_unit,
                &record.bmc_address,
                &record.bios_version,
                &finding.wanted.title,
                &finding.wanted.menu,
                &finding.wanted.attribute,
                present(finding),
                finding.wanted.target(),
                finding.verdict.words(),
                finding.observation.confidence.word(),
                &finding.observation.source,
                &finding.observation.evidence,
                &finding.wanted.reason,
            ];
            writer.write_record(cells.map(plain)).map_err(failed)?;
        }
    }
    writer.into_inner().map_err(|error| Error::system(format!("cannot write the ticket as CSV: {error}")))
}

/// A cell that no spreadsheet takes for a formula.
fn plain(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{cell}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::{host, profile};
    use super::super::record::ReplicaRole;
    use super::super::ticket::tests::wrong;
    use super::super::ticket::{Options, build};
    use super::*;

    #[test]
    fn rows_are_quoted_and_formulas_defused() {
        let mut record = host("a", "c,1", ReplicaRole::Secondary, wrong());
        record.asset_tag = "=HYPERLINK(\"x\")".to_owned();
        record.observations[0].evidence = "15\nline".to_owned();
        let ticket = build(&profile(), &[record], &Options::default()).unwrap().unwrap();
        let bytes = write(&ticket).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(bytes.starts_with(BYTE_ORDER_MARK));
        let row = format!(
            "{},1,a,\"c,1\",secondary,Huawei,TaiShan 200,S-a,\"'=HYPERLINK(\"\"x\"\")\",Langfang,R7,12,10.0.0.7,1.75,\
             cpu prefetching,Advanced > MISC Config,Attribute,enabled,disabled,wrong,observed,/sys/class/misc/prefetch/policy,\
             \"15\nline\",cpu_prefetching matters\r\n",
            ticket.id
        );
        assert!(text.contains(&row), "{text}");
        let mut reader = ::csv::Reader::from_reader(&bytes[BYTE_ORDER_MARK.len()..]);
        assert_eq!(reader.headers().unwrap().len(), COLUMNS.len());
        assert_eq!(reader.records().map(|record| record.unwrap().len()).collect::<Vec<_>>(), [COLUMNS.len(); 2]);
    }

    #[test]
    fn cells_that_would_be_computed_are_text() {
        for cell in ["=1", "+1", "-1", "@x", "\tx", "\rx"] {
            assert_eq!(plain(cell), format!("'{cell}"));
        }
        assert_eq!(plain("a=1"), "a=1");
    }
}
