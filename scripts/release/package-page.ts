/**
 * The page of the package on a registry shows README.md alone: a relative link leads nowhere there. In the repository relative links are
 * right, since they work in any clone and on any branch. So the package gets a copy whose links name the repository and the tag.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'

/** Markdown links and pictures, and the pictures of `<img>` and `<source>`; not what has a scheme, and not anchors of the page itself. */
const link = /(\]\()(?![a-z]+:|#)([^)\s]+)(?=\))|(\b(?:src|srcset|href)=")(?![a-z]+:|#)([^"]+)(?=")/gu
const code = /(^```[^]*?^```$|`[^`\n]*`)/gmu

export function relativeLinks(markdown: string): string[] {
  return [...markdown.replaceAll(code, '').matchAll(link)].map(([, , inText, , inTag]) => (inText ?? inTag)!)
}

/** `repository` is its address without `.git`; `root` is the folder of the checkout, which tells folders from files. */
export function withAbsoluteLinks(markdown: string, repository: string, tag: string, root: string): string {
  const absolute = (target: string) => {
    const [path] = target.split('#', 1)
    const kind = /\.(?:png|svg)$/u.test(path!) ? 'raw' : statSync(join(root, path!)).isDirectory() ? 'tree' : 'blob'
    return `${repository}/${kind}/${tag}/${target}`
  }
  return markdown
    .split(code)
    .map((piece, index) =>
      // What `code` has captured stands at the odd places.
      index % 2 === 1
        ? piece
        : piece.replaceAll(link, (_, markdownStart, inText, tagStart, inTag) =>
            inText === undefined ? `${tagStart}${absolute(inTag)}` : `${markdownStart}${absolute(inText)}`,
          ),
    )
    .join('')
}
