// A comment in Markdown as a page that looks like GitHub's.
//
//   node comment-page.mjs comment.md FOLDER_WITH_NODE_MODULES > page.html
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [file, folder] = process.argv.slice(2)
const require = createRequire(pathToFileURL(resolve(folder, 'page.js')))
const { marked } = await import(pathToFileURL(require.resolve('marked')))

const style = `
  body { margin: 0; padding: 16px; background: #fff; color: #1f2328;
    font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", Helvetica, Arial, sans-serif, "Noto Color Emoji"; }
  .box { border: 1px solid #d1d9e0; border-radius: 6px; }
  .who { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; color: #59636e; }
  .who b { color: #1f2328; }
  .text { padding: 16px; }
  h3, h4 { margin: 0 0 12px; font-size: 18px; line-height: 1.3; } h4 { font-size: 15px; margin-top: 20px; }
  p, ul, pre, table, details, blockquote { margin: 0 0 12px; }
  ul { padding-left: 24px; }
  blockquote { padding: 0 12px; color: #59636e; border-left: 4px solid #d1d9e0; }
  table { border-collapse: collapse; font-size: 12.5px; }
  th, td { border: 1px solid #d1d9e0; padding: 4px 9px; }
  tr:nth-child(2n) { background: #f6f8fa; }
  code, pre { font: 12px "SFMono-Regular", "Noto Sans Mono", "DejaVu Sans Mono", monospace; background: #818b981f; border-radius: 6px; }
  code { padding: 2px 5px; } pre { padding: 12px; background: #f6f8fa; white-space: pre-wrap; } pre code { padding: 0; background: none; }
  a { color: #0969da; text-decoration: none; }
  details { margin-bottom: 6px; }`

const text = marked.parse(readFileSync(file, 'utf8'), { gfm: true })
process.stdout.write(`<!doctype html><html lang="en"><meta charset="utf-8"><title>comment</title><style>${style}</style>
<div class="box"><div class="who"><b>github-actions</b> bot commented</div><div class="text">${text}</div></div>
<script>document.body.dataset.height = Math.ceil(document.querySelector(".box").getBoundingClientRect().bottom) + 16</script></html>\n`)
