use std::fmt;

use crate::tools::Missing;

/// What `--help` prints, and what follows an unknown word.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  test             everything needed to trust this build
  test --install   the same, installing missing system tools with apt-get
  ci               the plain stages: format, tidy, licences, build, tests, doc tests, examples, lints, docs
  ci --deep        the deep stages only: models, storms, crashes, simulations, counts
  tidy             the repository's own rules
  bench [NAME] …   the benches as one table of ratios, or with `--json`; `--plots` draws them, `--check` holds counts of
                   instructions, allocations and bytes against their ceilings, `--set-ceilings` moves those;
                   NAME: limiter, overhead, burst, renewal, loopback
  evidence         what stands behind each promise, measured anew; `--only F8` one row, `--planted NAME` with a bug in the
                   code, which must fail it, `--json` for programs
  mutants [CRATE]  mutants of the crates that decide about money: a sample, or all of one crate, which takes hours, or
                   what of it `--minutes N` allow
  fuzz [TARGET]    every fuzz target, or one, for `--minutes N` each, 5 if absent
  soak             a client and a gateway as processes, under faults: nothing may grow; `--minutes N`, 2 if absent, `--leak`
                   for the leak that it has to find
  outage           outages of a real network in the middle of an order, and processes killed in them; `--seconds 20,28`,
                   `--times N`, 5 if absent
  coverage [CRATE] the lines that the plain tests run, of each crate
  planted          plants every bug that the tree knows and says what found it; `--only NAME`, `--json`
  sim NAME …       simulations: `limits`, `orders`, `scripts`, `catalogue`, `requests`; `sim --help` tells the rest";

/// The commands whose words are told by [`USAGE`] alone.
const VERBS: [&str; 11] =
    ["bench", "ci", "coverage", "evidence", "fuzz", "mutants", "outage", "planted", "soak", "test", "tidy"];

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// The words after `bench`.
    Bench(Vec<String>),
    Ci,
    /// The words after `coverage`.
    Coverage(Vec<String>),
    Deep,
    /// The words after `evidence`.
    Evidence(Vec<String>),
    /// The words after `fuzz`.
    Fuzz(Vec<String>),
    /// The words after `mutants`.
    Mutants(Vec<String>),
    /// The words after `outage`.
    Outage(Vec<String>),
    /// The words after `planted`.
    Planted(Vec<String>),
    /// The words after `sim`, which the simulator understands itself.
    Sim(Vec<String>),
    /// The words after `soak`.
    Soak(Vec<String>),
    Test(Missing),
    Tidy,
    Usage,
}

impl Verb {
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, UnknownCommand> {
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let rest = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        match words[..] {
            ["ci"] => Ok(Self::Ci),
            ["ci", "--deep"] => Ok(Self::Deep),
            ["test"] => Ok(Self::Test(Missing::Refuse)),
            ["test", "--install"] => Ok(Self::Test(Missing::Install)),
            ["tidy"] => Ok(Self::Tidy),
            // Before the words of a command, which know no such word.
            [verb, "--help" | "-h"] if VERBS.contains(&verb) => Ok(Self::Usage),
            ["bench", ref words @ ..] => Ok(Self::Bench(rest(words))),
            ["coverage", ref words @ ..] => Ok(Self::Coverage(rest(words))),
            ["evidence", ref words @ ..] => Ok(Self::Evidence(rest(words))),
            ["fuzz", ref words @ ..] => Ok(Self::Fuzz(rest(words))),
            ["mutants", ref words @ ..] => Ok(Self::Mutants(rest(words))),
            ["outage", ref words @ ..] => Ok(Self::Outage(rest(words))),
            ["planted", ref words @ ..] => Ok(Self::Planted(rest(words))),
            ["sim", ref words @ ..] => Ok(Self::Sim(rest(words))),
            ["soak", ref words @ ..] => Ok(Self::Soak(rest(words))),
            ["--help" | "-h" | "help"] => Ok(Self::Usage),
            _ => Err(UnknownCommand(words.join(" "))),
        }
    }
}

/// Words that a command does not know, for whoever only learns of it as of any other failure.
#[derive(Debug)]
pub(crate) struct Misunderstood(pub(crate) anyhow::Error);

impl fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Misunderstood {}

/// A command line that is none of those in [`USAGE`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownCommand(String);

impl fmt::Display for UnknownCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("a command is missing"),
            words => write!(f, "unknown command `{words}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Verb, UnknownCommand> {
        Verb::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_command_of_the_usage_is_understood() {
        assert_eq!(parse("ci"), Ok(Verb::Ci));
        assert_eq!(parse("ci --deep"), Ok(Verb::Deep));
        assert_eq!(parse("test"), Ok(Verb::Test(Missing::Refuse)));
        assert_eq!(parse("test --install"), Ok(Verb::Test(Missing::Install)));
        assert_eq!(parse("tidy"), Ok(Verb::Tidy));
        for line in ["--help", "evidence --help", "ci -h", "soak --help"] {
            assert_eq!(parse(line), Ok(Verb::Usage), "{line}");
        }
        assert_eq!(parse("sim --help"), Ok(Verb::Sim(vec!["--help".into()])));
        assert_eq!(parse("bench --json"), Ok(Verb::Bench(vec!["--json".into()])));
        assert_eq!(parse("mutants steadfast-limit"), Ok(Verb::Mutants(vec!["steadfast-limit".into()])));
        assert_eq!(parse("fuzz journal"), Ok(Verb::Fuzz(vec!["journal".into()])));
        assert_eq!(parse("soak --leak"), Ok(Verb::Soak(vec!["--leak".into()])));
        assert_eq!(parse("outage --times 1"), Ok(Verb::Outage(vec!["--times".into(), "1".into()])));
        assert_eq!(parse("coverage"), Ok(Verb::Coverage(Vec::new())));
        assert_eq!(parse("evidence --json"), Ok(Verb::Evidence(vec!["--json".into()])));
        assert_eq!(parse("planted --json"), Ok(Verb::Planted(vec!["--json".into()])));
        assert_eq!(parse("sim limits --json"), Ok(Verb::Sim(vec!["limits".into(), "--json".into()])));
    }

    #[test]
    fn unknown_verbs_flags_and_leftovers_are_refused() {
        for line in
            ["", "release", "release --help", "ci --install", "test --deep", "tidy now", "ci --deep --deep"]
        {
            assert_eq!(parse(line), Err(UnknownCommand(line.to_owned())));
        }
    }
}
