"""The lint of doc comments, on small sources."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import check_comments as lint  # noqa: E402


class CheckComments(unittest.TestCase):
    def texts(self, source: str) -> list[str]:
        return [hit.text for hit in lint.hits_in("games/src/lib.rs", source)]

    def test_openings_are_flagged_in_outer_and_inner_doc_comments(self):
        self.assertEqual(self.texts("//! What it is.\n\n    /// Whether so.\nfn f() {}\n"), ["What it is.", "Whether so."])
        for opening in lint.OPENINGS:
            self.assertEqual(len(self.texts(f"/// {opening} stands here.\n")), 1, opening)

    def test_only_the_first_line_of_a_comment_counts(self):
        self.assertEqual(self.texts("/// Returns the sum.\n/// It is never negative.\nfn f() {}\n"), [])
        self.assertEqual(self.texts("///\n/// It is the sum.\nfn f() {}\n"), ["It is the sum."])
        self.assertEqual(self.texts("//! A module.\n/// It is an item.\nfn f() {}\n"), ["It is an item."])

    def test_whole_words_at_the_start_count_and_nothing_else(self):
        for line in ("/// Items in order.", "/// Whatever is left.", "/// Howitzer.", "/// Number of items: What", "/// whether so"):
            self.assertEqual(self.texts(line + "\nfn f() {}\n"), [], line)
        self.assertEqual(self.texts("// It is an ordinary comment.\n//// It is one too.\n"), [])

    def test_an_exception_needs_a_reason_and_a_comment_that_it_covers(self):
        hits = lint.hits_in("a/src/lib.rs", "/// What If, the game.\nstruct Game;\n/// What else.\nfn f() {}\n")
        exceptions = lint.read_exceptions("# a comment\n\na/src/lib.rs | What If, | a game's name\n")
        self.assertEqual([hit.text for hit in lint.without_exceptions(hits, exceptions)], ["What else."])
        with self.assertRaisesRegex(lint.ListError, "line 1"):
            lint.read_exceptions("a/src/lib.rs | What If,\n")
        with self.assertRaisesRegex(lint.ListError, "remove the exception"):
            lint.without_exceptions([], exceptions)

    def words(self, path: str, source: str) -> list[tuple[int, str]]:
        return [(hit.line, hit.text) for hit in lint.words_in(path, source)]

    def test_words_are_flagged_in_comments_and_strings_of_rust_and_not_in_its_code(self):
        source = 'fn mend(beside: u8) -> char { \'"\' }\n// They go on.\nlet x = "1\n is no file";\nlet y = r#"for "good" or for good"#;\n'
        expected = [(2, "// They go on."), (4, 'is no file"'), (5, 'r#"for "good" or for good"#')]
        self.assertEqual(self.words("a.rs", source), expected)
        self.assertEqual(self.words("a.rs", '/// `é` stands "twice".\nlet x = 3; // Greatest value.\n'), [(1, '/// `é` stands "twice".'), (2, "// Greatest value.")])

    def test_every_word_is_flagged_in_pages_and_plain_text_is_not(self):
        for line in ("It stands there.", "mended", "lies beside it", "the greatest", "meets it", "went on", "for good", "asked for",
                     "looked at", "is no file", "names no file"):  # fmt: skip
            self.assertEqual(self.words("a.md", f"One.\n{line}\n"), [(2, line)], line)
        for line in ("recommend", "understand", "is no longer", "standing", "a meeting", "goes one", "besides", "is not a file", "there is no file"):
            self.assertEqual(self.words("a.py", line), [], line)

    def test_a_hit_fails_the_lint(self):
        root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        exceptions = root / "exceptions.txt"
        exceptions.write_text("")
        self.enterContext(mock.patch.multiple(lint, ROOT=root, EXCEPTIONS=exceptions, files_of=lambda _: ["lib.rs"]))
        for text, code, lines in (("/// It is.\nfn f() {}\n", 1, 1), ("/// Returns 1.\n// They go on.\n", 1, 1), ("/// Returns 1.\n", 0, 0)):
            (root / "lib.rs").write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(lint.main([]), code)
            self.assertEqual(len(out.getvalue().splitlines()), lines)


if __name__ == "__main__":
    unittest.main()
