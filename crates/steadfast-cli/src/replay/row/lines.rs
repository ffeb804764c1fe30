use bytes::Bytes;

/// Counts lines as an editor does; the CSV reader assigns blank lines and the second half of a line break to the
/// next row.
pub(super) struct Lines {
    file: Bytes,
    counted: usize,
    line: u64,
}

impl Lines {
    /// Stands at the first line of a file.
    pub(super) fn of(file: Bytes) -> Self {
        Self { file, counted: 0, line: 1 }
    }

    /// Returns the line of the first row that begins at or after `from`, past line breaks.
    pub(super) fn at(&mut self, from: u64) -> u64 {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.file.len());
        let breaks = self.file[from..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let passed = self.file.get(self.counted..from + breaks).unwrap_or_default();
        self.line += line_breaks(passed);
        self.counted = self.counted.max(from + breaks);
        self.line
    }

    /// Returns the line on which the last row ends, if the next one begins at `end`.
    pub(super) fn last(&self, end: u64) -> u64 {
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(self.file.len());
        self.line + line_breaks(self.file.get(self.counted..end).unwrap_or_default().trim_ascii_end())
    }
}

/// Counts line breaks. A single CR is one, because the CSV reader ends rows there, and a row's line names its order.
pub(super) fn line_breaks(bytes: &[u8]) -> u64 {
    let is_break = |(at, byte): (usize, &u8)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    bytes.iter().enumerate().filter(|&one| is_break(one)).count() as u64
}
