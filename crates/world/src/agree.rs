use crate::World;

/// Why a rank cannot go on: an exit code of hpcbench's and a message for the person at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code: 1 could not run, 2 usage.
    pub code: u8,
    /// What was wrong, where, and what to type instead.
    pub message: String,
}

impl Failure {
    /// The user's words cannot be carried out: code 2.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { code: 2, message: message.into() }
    }

    /// The machine cannot carry them out: code 1.
    pub fn cannot_run(message: impl Into<String>) -> Failure {
        Failure { code: 1, message: message.into() }
    }

    fn encode(result: Result<(), &Failure>) -> String {
        match result {
            Ok(()) => String::new(),
            Err(failure) => format!("{} {}", failure.code, failure.message),
        }
    }

    fn decode(text: &str) -> Option<Failure> {
        let (code, message) = text.split_once(' ')?;
        Some(Failure { code: code.parse().ok()?, message: message.to_owned() })
    }
}

impl World {
    /// Goes on only if every rank can: where one or more cannot, all get the failure of the lowest
    /// of them, with its rank and host where it is not rank 0 alone that has it. Collective.
    ///
    /// # Errors
    /// The failure of the lowest rank that has one.
    pub fn agree<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let texts = self.all_gather_text(&Failure::encode(result.as_ref().map(|_| ())));
        let mut failures = texts
            .iter()
            .enumerate()
            .filter_map(|(rank, text)| Some((rank, Failure::decode(text)?)));
        let Some((rank, mut failure)) = failures.next() else {
            return result;
        };
        let everywhere = failures.count() + 1 == self.size();
        if !everywhere {
            failure.message =
                format!("rank {rank} on {}: {}", self.member(rank).host, failure.message);
        }
        Err(failure)
    }

    /// Checks that every rank has the same text as rank 0. Collective.
    ///
    /// # Errors
    /// Usage failure that names `what` differs, the first rank that differs, and both texts.
    pub fn same_everywhere(&self, what: &str, text: &str) -> Result<(), Failure> {
        let texts = self.all_gather_text(text);
        let differing = texts.iter().enumerate().filter(|(_, other)| **other != texts[0]);
        let ranks: Vec<usize> = differing.map(|(rank, _)| rank).collect();
        let Some(&first) = ranks.first() else { return Ok(()) };
        Err(Failure::usage(format!(
            "the ranks do not have the same {what}: rank 0 on {} has `{}`, rank {first} on {} has `{}`{}. \
             Start every rank with the same binary and the same options",
            self.member(0).host,
            texts[0],
            self.member(first).host,
            texts[first],
            if ranks.len() > 1 {
                format!(" ({} ranks differ)", ranks.len())
            } else {
                String::new()
            },
        )))
    }
}
