/**
 * A step's place in a run: names joined by `/`, from `main` or `after`. The run itself has the empty path.
 */
export function joinPath(parent: string, name: string | number): string {
  return parent === '' ? String(name) : `${parent}/${name}`
}

/** `main/answer/2` → `main/answer`; the parent of a first name is the run, ``. */
export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? '' : path.slice(0, slash)
}

/** Whether `path` is `root` or lies below it. Everything lies below the run. */
export function isUnder(path: string, root: string): boolean {
  return root === '' || path === root || (path.startsWith(root) && path.charCodeAt(root.length) === 47)
}
