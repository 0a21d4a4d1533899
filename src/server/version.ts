/** The package version. Edge platforms cannot read package.json; a test keeps both equal. */
export const version = '0.1.0'
