/**
 * A client of a session without a WordPress: files in memory, and the few commands that tests run.
 */

/** Returns a fake client. `archive` are the files at the start by path; `hooks` replace single methods. */
export function fakeClient( archive, { root = '/wordpress/wp-content/plugins/demo', target = 'plugins/demo', ...hooks } = {} ) {
	const encode = ( value ) => ( 'string' === typeof value ? new TextEncoder().encode( value ) : value );
	const baseline = new Map( Object.entries( archive ).map( ( [ path, value ] ) => [ path, encode( value ) ] ) );
	const files = new Map( baseline );
	const calls = [];
	const navigations = new Set();
	let url = '/';
	const missing = ( path ) => Object.assign( new Error( `there is no file ${ path }` ), { code: 'wp_codebox_browser_file_failed' } );
	const same = ( a, b ) => a && b && a.length === b.length && a.every( ( byte, index ) => byte === b[ index ] );
	const client = {
		files,
		calls,
		async readFileAsBuffer( path ) {
			if ( ! files.has( path ) ) {
				throw missing( path );
			}
			return files.get( path ).slice();
		},
		readFileAsText: async ( path ) => new TextDecoder().decode( await client.readFileAsBuffer( path ) ),
		async writeFile( path, contents ) {
			calls.push( [ 'writeFile', path ] );
			files.set( path, encode( contents ) );
		},
		async mkdirTree() {},
		async unlink( path ) {
			files.delete( path );
		},
		fileExists: async ( path ) => files.has( path ) || client.isDir( path ),
		isDir: async ( path ) => [ ...files.keys() ].some( ( name ) => name.startsWith( path + '/' ) ),
		async listFiles( path ) {
			return [ ...new Set( [ ...files.keys() ].filter( ( name ) => name.startsWith( path + '/' ) ).map( ( name ) => name.slice( path.length + 1 ).split( '/' )[ 0 ] ) ) ];
		},
		async goTo( path ) {
			calls.push( [ 'goTo', path ] );
			url = path;
			navigations.forEach( ( handler ) => handler( path ) );
			await hooks.show?.( path, client );
		},
		getCurrentURL: async () => url,
		async onNavigation( handler ) {
			navigations.add( handler );
			return () => navigations.delete( handler );
		},
		async exec( command, args = [], { cwd, executionId, onOutput } = {} ) {
			calls.push( [ 'exec', command, ...args ] );
			const resolve = ( path ) => ( path.startsWith( '/' ) ? path : `${ cwd }/${ path }` );
			if ( 'cat' === command ) {
				for ( const name of args ) {
					const bytes = files.get( resolve( name ) );
					if ( ! bytes ) {
						onOutput( { executionId, stream: 'stderr', data: `cat: ${ name }: No such file or directory\n` } );
						return { executionId, exitCode: 1 };
					}
					onOutput( { executionId, stream: 'stdout', data: new TextDecoder().decode( bytes ) } );
				}
				return { executionId, exitCode: 0 };
			}
			if ( 'ls' === command ) {
				( await client.listFiles( cwd ) ).forEach( ( name ) => onOutput( { executionId, stream: 'stdout', data: name + '\n' } ) );
				return { executionId, exitCode: 0 };
			}
			if ( 'write' === command ) {
				files.set( resolve( args[ 0 ] ), encode( args[ 1 ] ) );
				return { executionId, exitCode: 0 };
			}
			throw Object.assign( new Error( `the command ${ command } is not supported` ), { code: 'wp_codebox_browser_command_unsupported', hint: 'Use php.' } );
		},
		async changedFiles() {
			const paths = [ ...new Set( [ ...baseline.keys(), ...files.keys() ] ) ].filter( ( path ) => path.startsWith( root + '/' ) ).sort();
			return paths.flatMap( ( path ) => {
				const before = baseline.get( path );
				const after = files.get( path );
				if ( same( before, after ) ) {
					return [];
				}
				return [ { path: target + path.slice( root.length ), status: ! before ? 'added' : after ? 'modified' : 'deleted', ...( before ? { before } : {} ), ...( after ? { after } : {} ) } ];
			} );
		},
		async destroy() {},
	};
	return Object.assign( client, hooks.client );
}
