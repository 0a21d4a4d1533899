/** Whether a real path lies in a folder, given by its real path too: where a link leads shows only there. */
export function isInside(folder: string, path: string): boolean {
  const rest = path.slice(folder.length)
  return path.startsWith(folder) && (/[/\\]$/u.test(folder) || /^[/\\]/u.test(rest))
}
