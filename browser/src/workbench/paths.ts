/**
 * Paths inside of the sandbox.
 */

/** A path that is not usable, with the reason. */
export class PathError extends Error {
	readonly code = 'wp_codebox_input_invalid';
}

/** Returns the absolute path of a path that is absolute, or relative to `base`. A relative one stays below `base`. */
export function resolve( path: string, base: string ): string {
	if ( '' === path || path.includes( '\0' ) ) {
		throw new PathError( `${ JSON.stringify( path ) } is not a path` );
	}
	const absolute = path.startsWith( '/' );
	const parts: string[] = [];
	for ( const part of path.split( '/' ) ) {
		if ( '..' === part ) {
			if ( 0 === parts.length ) {
				throw new PathError( `the path ${ JSON.stringify( path ) } leaves its directory; write an absolute path, or one without ..` );
			}
			parts.pop();
		} else if ( '' !== part && '.' !== part ) {
			parts.push( part );
		}
	}
	return [ absolute ? '' : base.replace( /\/$/, '' ), ...parts ].join( '/' ) || '/';
}

/** Returns the directory of a path. */
export function directory( path: string ): string {
	return path.slice( 0, path.lastIndexOf( '/' ) ) || '/';
}

/** Returns the last part of a path. */
export function basename( path: string ): string {
	return path.slice( path.lastIndexOf( '/' ) + 1 );
}

/** Returns the path as a person reads it: relative to the root that contains it, when one does. */
export function shown( path: string, base: string ): string {
	const start = base.replace( /\/$/, '' ) + '/';
	return path.startsWith( start ) ? path.slice( start.length ) : path;
}
