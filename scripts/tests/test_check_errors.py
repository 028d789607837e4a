"""The lint of error messages, on small sources."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_errors as lint  # noqa: E402

NAMED = """
/// Error of a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read: `{source}` in a comment is not a placeholder.
    #[error("cannot read {path}MORE")]
    Read {
        /// Path, (with a bracket.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}
"""


class CheckErrors(unittest.TestCase):
    def names(self, source: str) -> list[str]:
        return [hit.text.split("`")[1] for hit in lint.hits_in("games/src/lib.rs", source)]

    def test_a_field_named_source_is_a_source(self):
        self.assertEqual(self.names(NAMED.replace("MORE", ": {source}")), ["Read"])
        self.assertEqual(self.names(NAMED.replace("MORE", ": {source:?}")), ["Read"])
        self.assertEqual(self.names(NAMED.replace("MORE", "")), [])
        self.assertEqual(self.names(NAMED.replace("MORE", ": {{source}}")), [])
        self.assertEqual(self.names(NAMED.replace("MORE", ": {source}").replace("source:", "reason:")), [])

    def test_an_attribute_makes_a_field_a_source(self):
        for attribute in ("#[from]", "#[source]"):
            self.assertEqual(self.names(f'#[error("no: {{0}}")]\nA({attribute} io::Error),'), ["A"])
            self.assertEqual(self.names(f'#[error("no: {{0}}")]\nA(String, {attribute} io::Error),'), [])
            self.assertEqual(self.names(f'#[error("no: {{1}}")]\nA(Map<u8, u8>, {attribute} io::Error),'), ["A"])
            self.assertEqual(self.names(f'#[error("no: {{error}}")]\nA {{ {attribute} error: io::Error }},'), ["A"])
        self.assertEqual(self.names('#[error("no: {0}")]\nA(String),'), [])

    def test_arguments_of_the_format_string_count(self):
        self.assertEqual(self.names('#[error("no: {}", .0.kind())]\nA(#[from] io::Error),'), ["A"])
        self.assertEqual(self.names('#[error("no: {}", .path.display())]\nA { path: PathBuf, source: io::Error },'), [])

    def test_structs_are_checked_and_other_attributes_are_skipped(self):
        source = '#[error("no: {source}")]\n#[allow(dead_code)]\npub(crate) struct Fault {\n    source: Box<dyn Error>,\n}\n'
        self.assertEqual(self.names(source), ["Fault"])
        self.assertEqual(self.names('#[error(transparent)]\nA(#[from] io::Error),'), [])

    def test_a_hit_has_its_line_and_sets_the_exit_code(self):
        source = NAMED.replace("MORE", ": {source}")
        self.assertEqual(lint.hits_in("a/src/lib.rs", source)[0].line, 6)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "lib.rs").write_text(source)
            with mock.patch.object(lint, "ROOT", Path(folder)), mock.patch.object(lint, "rust_files", lambda _: ["lib.rs"]):
                out = io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                    self.assertEqual(lint.main([]), 1)
                    self.assertEqual(lint.main(["elsewhere"]), 0)
        self.assertTrue(out.getvalue().startswith("lib.rs:6: `Read` prints its source"))


if __name__ == "__main__":
    unittest.main()
