/* home.h: where things of hwnas lie that no user names: the data that ships, the caches. */
#ifndef HWNAS_BASE_HOME_H
#define HWNAS_BASE_HOME_H

/* The folder of search_spaces/, predictors/ and gpus/. A program or library that runs from the build
 * tree uses the source tree; an installed one never does, even if the source tree still exists. It
 * uses ../share/hwnas beside its own folder, so that an installation can be moved, else the folder
 * that it was configured for. Borrowed; found once, thread-safe. */
const char *hwnas_data_root(void);

/* The folder of the running program or of this library. NULL where the system cannot tell. Yours to
 * free(). */
char *hwnas_own_folder(void);

/* A file or folder in the user's cache: $XDG_CACHE_HOME/hwnas/NAME, else ~/.cache/hwnas/NAME; it need
 * not exist. NULL: the user has no home. Yours to free(). */
char *hwnas_cache_path(const char *name);

/* Makes the folders above a file. What fails shows when the file is opened. */
void hwnas_make_folders(const char *file);

#endif
