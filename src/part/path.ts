/**
 * A step's path in a run: names joined by `/`, starting with `main` or `after`. The path of the run itself is empty.
 */
export function joinPath(parent: string, name: string | number): string {
  return parent === '' ? String(name) : `${parent}/${name}`
}

/** `main/answer/2` → `main/answer`; the parent of a single name is the run, `''`. */
export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '' : path.slice(0, slash)
}

/** Whether `path` is `root` or below it. Every path is below the run's. */
export function isUnder(path: string, root: string): boolean {
  return root === '' || path === root || (path.startsWith(root) && path.charCodeAt(root.length) === 47)
}
