# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

# What the Markdown pages lose in the reference: links to headings, since Doxygen 1.9.4 names these otherwise than GitHub,
# and links to files that are no pages, such as sources. Links between pages, pictures, and what has a scheme remain.
s/\.md#[^()]*\)/.md)/g
s/\]\(([A-Za-z0-9_+./-]+\.md)\)/]{\1}/g
s/(^|[^!])\[([^][]+)\]\(([A-Za-z0-9_+-]*[./][A-Za-z0-9_+./-]*|LICENSE|#[a-z0-9_-]+)\)/\1\2/g
s/\]\{([A-Za-z0-9_+./-]+\.md)\}/](\1)/g
