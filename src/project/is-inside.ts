/** Whether a path lies in a folder. Pass real paths for both: only they show where symlinks lead. */
export function isInside(folder: string, path: string): boolean {
  const rest = path.slice(folder.length)
  return path.startsWith(folder) && (/[/\\]$/u.test(folder) || /^[/\\]/u.test(rest))
}
