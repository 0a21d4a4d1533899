/** The package's version; a test holds it equal to package.json, which the edge cannot read. */
export const version = '0.1.0'
