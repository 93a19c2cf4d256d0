/**
 * Applies patches with git, in directories that hold one side of a change.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Writes one side of the entries into a directory. Names are bytes, so paths are buffers. */
function write( root, entries, side ) {
	for ( const entry of entries ) {
		const value = entry[ side ];
		if ( value ) {
			const path = Buffer.concat( [ Buffer.from( root + '/' ), Buffer.from( entry.path ) ] );
			mkdirSync( path.subarray( 0, path.lastIndexOf( 0x2f ) ), { recursive: true } );
			if ( 'symlink' === value.type ) {
				symlinkSync( Buffer.from( value.bytes ), path );
			} else if ( 'file' === value.type ) {
				writeFileSync( path, value.bytes );
				chmodSync( path, '100755' === value.mode ? 0o755 : 0o644 );
			}
		}
	}
}

/** Returns all files and links below a directory by name. */
function read( root, below = Buffer.alloc( 0 ), found = new Map() ) {
	for ( const name of readdirSync( Buffer.concat( [ Buffer.from( root + '/' ), below ] ), { encoding: 'buffer' } ) ) {
		const relative = Buffer.concat( [ below, name ] );
		const path = Buffer.concat( [ Buffer.from( root + '/' ), relative ] );
		const status = lstatSync( path );
		if ( status.isDirectory() ) {
			read( root, Buffer.concat( [ relative, Buffer.from( '/' ) ] ), found );
		} else {
			const bytes = status.isSymbolicLink() ? readlinkSync( path, { encoding: 'buffer' } ) : readFileSync( path );
			found.set( relative.toString( 'latin1' ), `${ status.isSymbolicLink() ? 'link' : status.mode & 0o111 ? '755' : '644' } ${ bytes.toString( 'base64' ) }` );
		}
	}
	return found;
}

/** Returns the line counts of `git apply --numstat -z` by path: insertions and deletions, or '-' for binary contents. */
function counts( output ) {
	const found = new Map();
	for ( const row of output.toString( 'latin1' ).split( '\0' ).slice( 0, -1 ) ) {
		const [ , insertions, deletions, path ] = /^(\d+|-)\t(\d+|-)\t([^]*)$/.exec( row );
		// A file that becomes a link has two rows.
		const before = found.get( path ) ?? [ 0, 0 ];
		found.set( path, '-' === insertions || '-' === before ? '-' : [ before[ 0 ] + Number( insertions ), before[ 1 ] + Number( deletions ) ] );
	}
	return found;
}

/**
 * Applies a patch to the contents before the change. Returns the files that result, those that should, and git's line counts; throws when
 * git refuses the patch.
 */
export function apply( entries, patch ) {
	const root = mkdtempSync( join( tmpdir(), 'workbench-git-' ) );
	const [ before, after ] = [ 'before', 'after' ].map( ( side ) => {
		mkdirSync( join( root, side ) );
		write( join( root, side ), entries, side );
		return join( root, side );
	} );
	const git = ( ...options ) =>
		execFileSync( 'git', [ '-c', 'core.autocrlf=false', 'apply', '--whitespace=nowarn', ...options, '-' ], {
			stdio: [ 'pipe', 'pipe', 'pipe' ],
			env: { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: root, GIT_CONFIG_NOSYSTEM: '1', HOME: '/nonexistent' },
			cwd: before,
			input: patch,
		} );
	try {
		const numbers = patch.length > 0 ? counts( git( '--numstat', '-z' ) ) : new Map();
		if ( patch.length > 0 ) {
			git();
		}
		return { got: read( before ), wanted: read( after ), numbers };
	} finally {
		rmSync( root, { recursive: true, force: true } );
	}
}
