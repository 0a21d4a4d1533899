/** A data folder of a build of 25 November 2026: with the build of today nothing of it is lost. `old.all.test.ts` opens older ones. */
import { inFolder, passesTheList } from './opens.ts'

passesTheList('25', () => inFolder, 'folder')
