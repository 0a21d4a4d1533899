/** Where a file stands in the request that brought it, for a refusal that comes later. Not stored. */
import type { FileContent } from './message.ts'

const places = new WeakMap<FileContent, string>()

export function withPlace(file: FileContent, place: string): FileContent {
  places.set(file, place)
  return file
}

export function placeOf(file: FileContent): string | undefined {
  return places.get(file)
}
